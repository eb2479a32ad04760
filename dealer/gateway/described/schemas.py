"""The form of all that goes over the wire, as JSON Schema read from the types that the code has."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from dealer import errors
from dealer.errors import Refused
from dealer.gateway import results as r
from dealer.gateway.commands import WISHES, Wish
from dealer.gateway.described.facts import fact_schemas, object_of
from dealer.gateway.described.words import FAULTS, MEMBERS, REFUSALS
from dealer.gateway.floor import Question
from dealer.gateway.questions import QUESTIONS

Schema = dict[str, Any]

METHODS: dict[str, Wish | Question] = {**WISHES, **QUESTIONS}
TOLD: dict[str, type[Struct]] = {
    "snapshot": r.Reset,
    "resumed": r.CaughtUp,
    "checkpoint": r.Checkpoint,
    "presence": r.Presence,
    "session.drain": r.Drain,
}
"""The notifications that are written from a type; `event` and `events` carry the log's leaves."""

AT = "#/components/schemas/"


def results_of(method: str) -> tuple[type[Struct], ...]:
    """What may answer a method, any of these."""
    result = METHODS[method].result
    return result if isinstance(result, tuple) else (result,)


def refusals() -> dict[str, type[Refused]]:
    """Every reason to refuse, with the error that has it, by code."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    refused = [kind for kind in kinds if issubclass(kind, Refused)]
    return {kind.reason: kind for kind in sorted(refused, key=lambda kind: kind.code)}


def codes() -> dict[int, str]:
    """Every error code, with what it means."""
    refused = {kind.code: REFUSALS[reason] for reason, kind in refusals().items()}
    return FAULTS | refused


def schema_of(kind: type[Struct]) -> Schema:
    return {"$ref": AT + kind.__name__}


def any_of(kinds: tuple[type[Struct], ...]) -> Schema:
    found = [schema_of(kind) for kind in kinds]
    return found[0] if len(found) == 1 else {"anyOf": found}


def told_schema(method: str) -> Schema:
    """The params of a notification."""
    if method == "event":
        return {"$ref": f"{AT}Event"}
    if method == "events":
        return object_of({"list": {"type": "array", "items": {"$ref": f"{AT}Event"}}})
    return schema_of(TOLD[method])


@cache
def components() -> dict[str, Schema]:
    """Every schema by its name: parameters, results, notifications and events."""
    params: set[type[Struct]] = {method.params for method in METHODS.values()}
    results = {kind for method in METHODS for kind in results_of(method)} | {r.Error}
    told = results | set(TOLD.values())
    found = _read(params) | {name: _without_null(one) for name, one in _read(told).items()}
    found["Why"]["properties"]["reason"]["enum"] = list(refusals())
    found["Error"]["properties"]["code"]["enum"] = sorted(codes())
    return dict(sorted(found.items())) | fact_schemas()


def _read(kinds: set[type[Struct]]) -> dict[str, Schema]:
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template=AT + "{name}")
    return {name: _worded(_as_draft_7(schema)) for name, schema in found.items()}


def _as_draft_7(schema: Any) -> Any:
    """Both documents speak JSON Schema draft 7, where a tuple's items stand under `items`."""
    if isinstance(schema, list):
        return [_as_draft_7(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _as_draft_7(one) for name, one in schema.items()}
    if "prefixItems" in found:
        found |= {"items": found.pop("prefixItems"), "additionalItems": False}
    return found


def _worded(schema: Schema) -> Schema:
    """The members of an object with what they mean."""
    for name, member in schema.get("properties", {}).items():
        if name in MEMBERS and "$ref" not in member:
            member.setdefault("description", MEMBERS[name])
    return schema


def _without_null(schema: Schema) -> Schema:
    """Members of results that are None are left out, so that none of them is null."""
    for name, member in schema.get("properties", {}).items():
        if name not in schema["required"] and "anyOf" in member:
            kinds = [one for one in member.pop("anyOf") if one != {"type": "null"}]
            member.pop("default", None)
            words = {} if "$ref" in kinds[0] else member
            schema["properties"][name] = words | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
    return schema
