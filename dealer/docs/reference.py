"""What the program declares, as Markdown: the page `reference/NAME.md` ends with what NAME yields.

The protocol is from `/openrpc.json` and `/asyncapi.json`, metrics are a server's.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from dealer import errors as refusals
from dealer.cli.main import app
from dealer.config import LIMIT_VARIABLE, LIMITS, SETTINGS, Settings
from dealer.eventlog.address import sqlite_address
from dealer.eventlog.schema import metadata, postgres
from dealer.game.events import TYPES
from dealer.gateway import serve
from dealer.gateway.schema import asyncapi, openrpc
from dealer.service.build import open_service

Part = Mapping[str, Any]

_DESCRIBED: dict[str, Any] = json.loads(openrpc())
_SCHEMAS: dict[str, Part] = _DESCRIBED["components"]["schemas"]
_ERRORS: dict[str, Part] = _DESCRIBED["components"]["errors"]
_REASONS = {name: one for name, one in _ERRORS.items() if "data" in one}


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell's line breaks become spaces, and bars are escaped. "None." without rows."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    lines = map(" | ".join, [heading, ["---"] * len(heading), *cells])
    return "".join(f"| {line} |\n" for line in lines) if cells else "None.\n"


def _code(value: object) -> str:
    return "" if value in (None, "", ()) else f"`{value}`"


def _named(schema: Part) -> str:
    """The name of the schema that this one refers to; "" if it is no reference."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def kind(schema: Part) -> str:
    """The type of a value, in words and in one line."""
    if name := _named(schema):
        return f"[{name}]({'events' if name in TYPES else 'types'}.md#{name.lower()})"
    found = schema.get("type", "any")
    types = [{**schema, "type": one} for one in found] if isinstance(found, list) else []
    if forms := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or types:
        return " or ".join(dict.fromkeys(map(kind, forms)))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(_code(json.dumps(value)) for value in values)
    if found == "array":
        items = schema.get("items", schema.get("prefixItems", {}))
        listed = ", ".join(map(kind, items if isinstance(items, list) else [items]))
        return f"array{_range(schema, 'Items')} of {listed}"
    pattern = f", `{schema['pattern']}`" if "pattern" in schema else ""
    length = _range(schema, "Length")
    unit = " characters" if length else ""
    return f"{found}{_range(schema, 'imum')}{length}{unit}{pattern}"


def _range(schema: Part, what: str) -> str:
    low, high = (schema.get(f"{end}{what}") for end in ("min", "max"))
    least = "" if low is None else f" from {low:,}"
    return least if high is None else f"{least or ' up'} to {high:,}"


def members(schema: Part, prefix: str = "", *, whole: bool = False) -> Iterator[list[str]]:
    """A row for each member of an object, and for members of objects within it that have no name.

    With `whole` those of named objects follow, too.
    """
    for name, member in schema.get("properties", {}).items():
        default = member.get("default")
        need = "" if default is None else f"default `{json.dumps(default)}`"
        need = "required" if name in schema.get("required", ()) else need
        # Angle brackets outside of code would be HTML.
        meaning = re.sub(r"<(?=[^`]*(?:`[^`]*`[^`]*)*$)", "&lt;", member.get("description", ""))
        yield [f"`{prefix}{name}`", kind(member), need, meaning]
        for inner, suffix in ((member, "."), (member.get("items", {}), "[].")):
            inside = _SCHEMAS.get(_named(inner), {}) if whole and _named(inner) else inner
            yield from members(inside, f"{prefix}{name}{suffix}", whole=whole)


def _members(schema: Part, *, whole: bool = False) -> str:
    """The members of an object, which may have a name; or its type if it has none."""
    found = _SCHEMAS.get(_named(schema), schema)
    if "properties" not in found and "type" in found:
        return f"{kind(found)}\n"
    return table(("member", "type", "", "meaning"), members(found, whole=whole))


def _example(*frames: object) -> str:
    lines = [f"{json.dumps(frame, ensure_ascii=False)}\n" for frame in frames]
    return f"```json\n{''.join(lines)}```\n"


def methods() -> Iterator[str]:
    """Parameters, results, refusals and examples of each method."""
    for method in _DESCRIBED["methods"]:
        yield f"## {method['name']}\n\n{method['summary']}\n"
        if rule := method.get("x-rule"):
            yield f"The table's [rule](types.md#rules) `{rule}` says who may.\n"
        if right := method.get("x-service-right"):
            yield f"A service needs the right `{right}`.\n"
        given = {one["name"]: {**one, **one["schema"]} for one in method["params"]}
        required = [one["name"] for one in method["params"] if one["required"]]
        yield f"Parameters:\n\n{_members({'properties': given, 'required': required})}"
        result = method["result"]["schema"]
        yield from (f"Result:\n\n{_members(one)}" for one in result.get("anyOf", [result]))
        reasons = map(_named, method["errors"])
        links = [f"[{name}](errors.md#{name})" for name in reasons if name in _REASONS]
        listed = ", ".join(links) if len(links) < len(_REASONS) else "any [reason](errors.md)"
        yield f"Refusals: {listed}.\n"
        for example in method["examples"]:
            params = {one["name"]: one["value"] for one in example["params"]}
            call = {"jsonrpc": "2.0", "id": 1, "method": method["name"], "params": params}
            answer = {"jsonrpc": "2.0", "id": 1, "result": example["result"]["value"]}
            yield _example(call, answer)


def notifications() -> Iterator[str]:
    """Parameters and examples of each notification."""
    messages = json.loads(asyncapi())["components"]["messages"]
    for one in _DESCRIBED["x-notifications"]:
        yield f"## {one['name']}\n\n{one['summary']}\n\nParameters:\n\n{_members(one['params'])}"
        yield _example(*(example["payload"] for example in messages[one["name"]]["examples"]))


def types(names: Iterable[str] = sorted(_SCHEMAS.keys() - TYPES)) -> Iterator[str]:
    """Members of named schemas, by default of those that are no events."""
    for name in names:
        says, whole = _SCHEMAS[name].get("description", ""), name in TYPES
        yield f"## {name}\n\n{says}\n\n{_members(_SCHEMAS[name], whole=whole)}"


def events() -> Iterator[str]:
    """Members of each type of event."""
    return types(TYPES)


def errors() -> Iterator[str]:
    """Reasons of refusals, codes of JSON-RPC and close codes."""
    faults = [(_code(one["code"]), one["message"]) for one in _ERRORS.values() if "data" not in one]
    closes = [(_code(one["code"]), one["meaning"]) for one in _DESCRIBED["x-close-codes"]]
    classes = [one for one in vars(refusals).values() if isinstance(one, type)]
    in_python = {vars(one).get("code"): one.__name__ for one in classes}
    for name, one in _REASONS.items():
        again = "temporary" if one["data"]["temporary"] else "not temporary"
        about = f"Code {one['code']}, `{in_python[one['code']]}`, {again}."
        yield f"## {name}\n\n{one['message']}\n\n{about}\n"
    yield f"## Codes of JSON-RPC\n\n{table(('code', 'meaning'), faults)}"
    yield f"## Close codes\n\n{table(('code', 'meaning'), closes)}"


def settings() -> Iterator[str]:
    """Flags and variables."""
    rows = [(one.flag, one.variable, one.default, one.help) for one in SETTINGS]
    for name, value in asdict(Settings().limits).items():
        rows.append((f"--limit {name}=", f"{LIMIT_VARIABLE}{name.upper()}", value, LIMITS[name]))
    cells = ([*map(_code, names), meaning] for *names, meaning in rows)
    yield table(("flag", "variable", "default", "meaning"), cells)


def metrics() -> Iterator[str]:
    """Names, kinds, labels and meanings of the metrics of a server."""
    rows = []
    for one in asyncio.run(_families()):
        name = f"{one.name}_total" if one.type == "counter" else one.name
        labels = map(_code, getattr(one, "_labelnames", ()))
        rows.append((_code(name), one.type, ", ".join(labels), one.documentation))
    yield table(("metric", "kind", "labels", "meaning"), rows)


async def _families() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(sqlite_address(Path(folder) / "dealer.db"))
        async with service as opened, serve(opened, port=0, ops_port=0) as gateway:
            return [*gateway.metrics.collect()]


def sql() -> Iterator[str]:
    """The statement of each table, on either database."""
    for database, tables, dialect in (
        ("SQLite", metadata.tables, sqlite.dialect()),
        ("PostgreSQL", postgres.tables, postgresql.dialect()),  # type: ignore[no-untyped-call]
    ):
        for name, one in sorted(tables.items()):
            statement = str(CreateTable(one).compile(dialect=dialect)).strip()
            yield f"## {database}: {name}\n\n```sql\n{statement}\n```\n"


def commands() -> Iterator[str]:
    """Help, arguments and options of each command."""
    yield from _command(app, "dealer")


def _command(command: Any, path: str) -> Iterator[str]:
    yield f"## {path}\n\n{inspect.cleandoc(command.help or '')}\n"
    flags = {setting.flag for setting in SETTINGS}
    rows, shared = [], []
    for one in command.params:
        name = ", ".join([*one.opts, *one.secondary_opts])
        if flags & {*one.opts}:
            shared.append(_code(name))
        else:
            name = name if name.startswith("-") else name.upper()
            rows.append((_code(name), _code(one.metavar), one.help or ""))
    yield table(("argument", "value", "meaning"), rows)
    if shared:
        yield f"[Settings](settings.md) that it takes as flags: {', '.join(shared)}.\n"
    for name, child in getattr(command, "commands", {}).items():
        yield from _command(child, f"{path} {name}")
