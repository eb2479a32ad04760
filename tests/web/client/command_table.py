"""The table of commands at the beginning of the client guide.

    python -m tests.web.client.command_table

writes it, from `/openrpc.json` and the sources of both clients: a command of a client is one that
sends the method.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dealer.gateway.schema import openrpc
from dealer.gateway.session.methods import METHODS

DEALER = Path(__file__).parents[3] / "dealer"
GUIDE = DEALER / "web/CLIENT.md"
FIRST, LAST = "<!-- commands -->\n", "<!-- end of commands -->\n"

_JS_METHOD = re.compile(r"^  (?:async )?(#?\w+)\((.*?)\) \{$(.*?)^  \}$", re.DOTALL | re.MULTILINE)
_OPTIONS = re.compile(r"const (\{ .*? \}) =\s+optionsOf\(")
_PROPERTIES = {"table.presence": "table.presence"}
"""What the JavaScript client has without a request, because it is notified."""


def written() -> str:
    """The table as Markdown."""
    in_js, in_python = dict(_of_javascript()), dict(_of_python())
    in_js |= _PROPERTIES
    rows: list[str] = []
    listed: list[list[str | None]] = []
    for method in json.loads(openrpc())["methods"]:
        calls = [commands.get(method["name"]) for commands in (in_js, in_python)]
        if any(calls) and calls not in listed:  # one call may send a method for each kind of stack
            listed.append(calls)
            cells = [f"`{call}`" if call else "" for call in calls]
            does = method["summary"].partition("\n\n")[0]
            rows.append(f"| {' | '.join([*cells, does, _who(method)])} |")
    head = ["| JavaScript | Python | what it does | who may |", "|---|---|---|---|"]
    rows.sort(key=lambda row: "`house." not in row)
    return "\n".join([*head, *rows]) + "\n"


def sent_methods() -> set[str]:
    """The methods that a public command of either client sends."""
    return {method for method, _ in [*_of_javascript(), *_of_python()]}


def parts() -> tuple[str, str, str]:
    """The guide before the table, the table in it, and the guide after it."""
    before, rest = GUIDE.read_text(encoding="utf-8").split(FIRST)
    table, after = rest.split(LAST)
    return before + FIRST, table, LAST + after


def _who(method: dict[str, Any]) -> str:
    if (rule := method.get("x-rule")) is not None:
        who = f"rule `{rule}`"
    elif METHODS[method["name"]].host:
        who = "host"
    else:
        names = {param["name"] for param in method["params"]}
        who = "player" if "token" in names else "anyone"
    right = method.get("x-service-right")
    return who if right is None else f"{who}; service: `{right}`"


def _of_javascript() -> Iterator[tuple[str, str]]:
    for file, object in (("house.js", "house"), ("remote_table.js", "table")):
        source = (DEALER / "web/client" / file).read_text(encoding="utf-8")
        for name, params, body in _JS_METHOD.findall(source):
            for method in re.findall(r'"([a-z]+\.[a-z_]+)"', body):
                if not name.startswith("#"):
                    if (options := _OPTIONS.search(body)) is not None:
                        params = params.replace("options", options[1])
                    given = re.sub(r" = (\{\}|[^,} ]+)", "", params)
                    yield method, f"{object}.{name}({given})"


def _of_python() -> Iterator[tuple[str, str]]:
    for file, object in (("house.py", "house"), ("table.py", "table")):
        tree = ast.parse((DEALER / "client" / file).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
                by_name = [f"{argument.arg}=" for argument in node.args.kwonlyargs]
                given = [argument.arg for argument in node.args.args[1:]] + by_name
                for method in _methods(node):
                    yield method, f"{object}.{node.name}({', '.join(given)})"


def _methods(function: ast.AsyncFunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z]+\.[a-z_]+", str(node.value)):
            yield str(node.value)


def main() -> None:
    before, _, after = parts()
    GUIDE.write_text(before + written() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
