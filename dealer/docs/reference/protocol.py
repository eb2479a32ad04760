"""The protocol's pages: methods, notifications, events and types, from the served documents.

They are made from the JSON of `/openrpc.json` and `/asyncapi.json`, so that whatever a server
describes is here. What a schema refers to is on the page `types`, and events are on a page of their
own.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dealer.docs.markdown import anchor, table
from dealer.docs.reference.schemas import MEMBERS, Schema, kind, members, named
from dealer.game.events import TYPES
from dealer.gateway.schema import asyncapi, openrpc

Part = dict[str, Any]
EVENTS, TYPES_PAGE, NOTIFICATIONS = "reference/events", "reference/types", "reference/notifications"


def protocol() -> dict[str, str]:
    """The pages by name."""
    described, messages = json.loads(openrpc()), json.loads(asyncapi())["components"]["messages"]
    return _Protocol(described, messages).pages()


class _Protocol:
    def __init__(self, described: Part, messages: dict[str, Part]) -> None:
        self._schemas: dict[str, Schema] = described["components"]["schemas"]
        self._errors: dict[str, Part] = described["components"]["errors"]
        self._described = described
        self._messages = messages

    def pages(self) -> dict[str, str]:
        kinds: dict[str, list[Part]] = defaultdict(list)
        for method in self._described["methods"]:
            kinds[method["name"].partition(".")[0]].append(method)
        found = {
            f"reference/methods-{name}": f"# Methods: {name}\n\n"
            + "\n".join(map(self._method, methods))
            for name, methods in kinds.items()
        }
        return found | {
            NOTIFICATIONS: self._notifications(),
            EVENTS: self._events(),
            TYPES_PAGE: self._types(),
        }

    def _method(self, method: Part) -> str:
        params = {
            parameter["name"]: parameter["schema"] | _given(parameter)
            for parameter in method["params"]
        }
        required = [parameter["name"] for parameter in method["params"] if parameter["required"]]
        right = method.get("x-service-right")
        return "\n".join(
            [
                f"## {method['name']}\n\n{method['summary']}\n",
                f"A service needs the right `{right}`.\n" if right else "",
                self._object("Parameters", {"properties": params, "required": required}),
                self._result(method["result"]["schema"]),
                self._refusals(method["errors"]),
                *(_example(method["name"], example) for example in method["examples"]),
            ]
        )

    def _refusals(self, errors: list[Schema]) -> str:
        """The reasons of refusals, in one sentence if they are all."""
        all_reasons = [
            name for name, error in self._errors.items() if "reason" in error.get("data", {})
        ]
        reasons = [name for error in errors if (name := named(error)) in all_reasons]
        if reasons == all_reasons:
            return "Refusals: any [reason](errors.md) that applies at a table.\n"
        return f"Refusals: {', '.join(f'[{reason}](errors.md#{reason})' for reason in reasons)}.\n"

    def _object(self, heading: str, schema: Schema) -> str:
        rows = list(members(schema, _link))
        return f"{heading}:\n\n{table(MEMBERS, rows)}" if rows else f"{heading}: none.\n"

    def _result(self, schema: Schema) -> str:
        several = schema.get("anyOf", [schema])
        found = []
        for form in several:
            name = named(form)
            whole = self._schemas[name] if name else form
            says = whole.get("description") if len(several) > 1 else ""
            found.append(self._object(f"Result{f' ({says})' if says else ''}", whole))
        return "\n".join(found)

    def _notifications(self) -> str:
        found = ["# Notifications\n"]
        for notification in self._described["x-notifications"]:
            found.append(f"## {notification['name']}\n\n{notification['summary']}\n")
            name = named(notification["params"])
            if name == "Event":
                found.append("The parameters are [an event](events.md).\n")
            else:
                found.append(
                    self._object(
                        "Parameters", self._schemas[name] if name else notification["params"]
                    )
                )
            examples = self._messages[notification["name"]]["examples"]
            found += [_json([f"< {_line(example['payload'])}"]) for example in examples]
        return "\n".join(found)

    def _events(self) -> str:
        found = [
            "# Events\n\nThe types of events, with the members that each has in the log, in "
            "bundles, in the feed and in notifications. `private` is only in the notification to a "
            "seat that may see the face.\n"
        ]
        for name in TYPES:
            schema = self._schemas[name]
            found.append(f"## {name}\n\n{schema['description']}\n")
            found.append(table(MEMBERS, members(schema, _link, named_schemas=self._schemas)))
        return "\n".join(found)

    def _types(self) -> str:
        found = ["# Types\n\nThe named schemas of parameters and results.\n"]
        for name in self._used():
            schema = self._schemas[name]
            says = schema.get("description", "")
            found.append(f"## {name}\n\n{says}\n")
            rows = list(members(schema, _link))
            found.append(table(MEMBERS, rows) if rows else f"{kind(schema, _link)}\n")
        return "\n".join(found)

    def _used(self) -> list[str]:
        """The schemas to which another one or a parameter refers, in the order of their names."""
        params = [
            parameter["schema"]
            for method in self._described["methods"]
            for parameter in method["params"]
        ]
        found = set(_references([*self._schemas.values(), params]))
        return sorted(found - {*TYPES, "Event"})


def _references(part: Any) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield named(part) or ""
        part = list(part.values())
    if isinstance(part, list):
        for form in part:
            yield from _references(form)


def _link(name: str) -> str:
    if name == "Event":
        return "[an event](events.md)"
    page = "events" if name in TYPES else "types"
    return f"[{name}]({page}.md#{anchor(name)})"


def _given(param: Part) -> Part:
    return {"description": param["description"]} if "description" in param else {}


def _example(method: str, example: Part) -> str:
    params = {parameter["name"]: parameter["value"] for parameter in example["params"]}
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = {"jsonrpc": "2.0", "id": 1, "result": example["result"]["value"]}
    return _json([f"> {_line(request)}", f"< {_line(answer)}"])


def _line(frame: Part) -> str:
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False)


def _json(lines: Iterator[str] | list[str]) -> str:
    return "```text\n" + "".join(f"{line}\n" for line in lines) + "```\n"
