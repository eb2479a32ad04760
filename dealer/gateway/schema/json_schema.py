"""JSON schemas of parameters, results and notifications, derived from their Python types."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema.components import DESCRIBED
from dealer.gateway.schema.draft_7 import as_draft_7
from dealer.gateway.schema.errors import codes, refusals
from dealer.gateway.schema.events import event_schemas, object_of
from dealer.gateway.schema.members import OWN, PARAMS, SENT
from dealer.gateway.schema.notifications import NOTIFICATION_TYPES
from dealer.gateway.schema.rules import rules_schemas
from dealer.gateway.schema.titles import REF, Titles, pascal, reference
from dealer.gateway.wire import params as p
from dealer.gateway.wire import results as r

Schema = dict[str, Any]


def result_schema(method: str) -> Schema:
    """The result of a method; where it may have several types, their union has a title."""
    kinds = METHODS[method].results
    return reference(kinds[0].__name__ if len(kinds) == 1 else f"{pascal(method)}Result")


def notification_schema(method: str) -> Schema:
    """The params of a notification."""
    if method in NOTIFICATION_TYPES:
        return reference(NOTIFICATION_TYPES[method].__name__)
    return reference({"event": "Event", "events": "Events"}[method])


@cache
def components() -> dict[str, Schema]:
    """Every schema by its title: parameters, results, notifications, events, and their parts."""
    params: set[type[Struct]] = {method.params for method in METHODS.values()}
    results = {kind for method in METHODS.values() for kind in method.results} | {r.Error}
    found = _params(params) | _sent(results | set(NOTIFICATION_TYPES.values()))
    found |= rules_schemas() | event_schemas() | _without_python_type(found["Shoe"])
    titles = Titles(DESCRIBED)
    titled = {title: titles.within(schema) for title, schema in found.items()}
    return dict(sorted((titled | titles.components).items()))


def _params(kinds: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Parameters and their parts; unknown members are refused."""
    found = _read(kinds, PARAMS)
    found["TableOpen"]["properties"]["rules"] = reference("Rules", PARAMS["rules"])
    for title in {kind.__name__ for kind in kinds}:
        methods = [f"`{name}`" for name in METHODS if METHODS[name].params.__name__ == title]
        found[title].setdefault("description", f"Parameters of {', '.join(methods)}.")
    return found


def _sent(kinds: Iterable[type[Struct]]) -> dict[str, Schema]:
    """What clients receive, which may have more members in later releases."""
    found = _read(kinds, SENT)
    of = {title: schema["properties"] for title, schema in found.items()}
    of["ErrorData"]["reason"] |= {"title": "RefusalReason", "enum": list(refusals())}
    of["Error"]["code"] |= {"title": "ErrorCode", "enum": sorted(codes())}
    of["FeedEvent"]["event"] = reference("Event", OWN["FeedEvent.event"])
    of["View"]["rules"] = reference("TableRules", OWN["View.rules"])
    return {title: schema | {"additionalProperties": True} for title, schema in found.items()}


def _without_python_type(shoe: Schema) -> dict[str, Schema]:
    """Lists of events, results of several types, and the deck in the rules that clients receive."""
    listed = {"type": "array", "items": reference("Event"), "description": "the events, in order"}
    deck = as_draft_7(msgspec.json.schema(p.Deck, ref_template=REF + "{name}"))
    kinds = [form for form in deck["anyOf"] if "$ref" not in form]
    found: dict[str, Schema] = {
        "Events": object_of("Events", {"list": listed})
        | {"description": "Events that were written together."},
        "TableShoe": shoe | {"title": "TableShoe", "additionalProperties": True},
        "TableDeck": {
            "title": "TableDeck",
            "description": DESCRIBED["Deck"],
            "anyOf": [*kinds, reference("TableShoe")],
        },
    }
    for name, method in METHODS.items():
        if len(method.results) > 1:
            title = f"{pascal(name)}Result"
            found[title] = {
                "title": title,
                "description": f"What `{name}` answers.",
                "anyOf": [reference(kind.__name__) for kind in method.results],
            }
    return found


def _read(kinds: Iterable[type[Struct]], by_name: dict[str, str]) -> dict[str, Schema]:
    """The schemas of types and of those in them, each member with its description."""
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template=REF + "{name}")
    for title, schema in found.items():
        schema |= {"properties": {}} | schema
        for name in [name for name in schema["properties"] if name.startswith("x-")]:
            del schema["properties"][name]  # an extension of OpenRPC, and no name in programs
            schema["required"].remove(name)
        if "description" in schema:
            schema["description"] = inspect.cleandoc(schema["description"])
        for name, member in schema["properties"].items():
            member["description"] = OWN.get(f"{title}.{name}") or by_name[name]
    return {title: _without_null(as_draft_7(schema)) for title, schema in found.items()}


def _without_null(schema: Schema) -> Schema:
    """Remove null from members that are not required: who has no value leaves them out.

    Results omit members that are None. In parameters null is accepted, and means the same.
    """
    for name, member in schema["properties"].items():
        if name not in schema["required"] and {"type": "null"} in member.get("anyOf", ()):
            kinds = [form for form in member["anyOf"] if form != {"type": "null"}]
            found = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
            schema["properties"][name] = found | {"description": member["description"]}
    return schema
