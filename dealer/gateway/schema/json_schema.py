"""JSON schemas of parameters, results and notifications, derived from their Python types."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema.errors import codes, refusals
from dealer.gateway.schema.events import event_schemas, object_of
from dealer.gateway.schema.members import MEMBERS
from dealer.gateway.schema.notifications import NOTIFICATION_TYPES
from dealer.gateway.wire import results as r

Schema = dict[str, Any]

REF = "#/components/schemas/"


def schema_of(kind: type[Struct]) -> Schema:
    return {"$ref": REF + kind.__name__}


def any_of(kinds: tuple[type[Struct], ...]) -> Schema:
    found = [schema_of(kind) for kind in kinds]
    return found[0] if len(found) == 1 else {"anyOf": found}


def notification_schema(method: str) -> Schema:
    """The params of a notification."""
    if method == "event":
        return {"$ref": f"{REF}Event"}
    if method == "events":
        return object_of({"list": {"type": "array", "items": {"$ref": f"{REF}Event"}}})
    return schema_of(NOTIFICATION_TYPES[method])


@cache
def components() -> dict[str, Schema]:
    """Every schema by its name: parameters, results, notifications and events."""
    params: set[type[Struct]] = {method.params for method in METHODS.values()}
    results = {kind for method in METHODS.values() for kind in method.results} | {r.Error}
    sent = results | set(NOTIFICATION_TYPES.values())
    found = _read(params) | {name: _without_null(one) for name, one in _read(sent).items()}
    found["ErrorData"]["properties"]["reason"]["enum"] = list(refusals())
    found["Error"]["properties"]["code"]["enum"] = sorted(codes())
    found["FeedEvent"]["properties"]["event"] = {"$ref": f"{REF}Event"}
    return dict(sorted(found.items())) | event_schemas()


def _read(kinds: set[type[Struct]]) -> dict[str, Schema]:
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template=REF + "{name}")
    return {name: _describe_members(_as_draft_7(schema)) for name, schema in found.items()}


def _as_draft_7(schema: Any) -> Any:
    """Convert to draft 7, which both documents use: there a tuple's items are under `items`."""
    if isinstance(schema, list):
        return [_as_draft_7(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _as_draft_7(one) for name, one in schema.items()}
    if "prefixItems" in found:
        found |= {"items": found.pop("prefixItems"), "additionalItems": False}
    return found


def _describe_members(schema: Schema) -> Schema:
    """Add the descriptions of an object's members."""
    for name, member in schema.get("properties", {}).items():
        if name in MEMBERS and "$ref" not in member:
            member.setdefault("description", MEMBERS[name])
    return schema


def _without_null(schema: Schema) -> Schema:
    """Remove null from optional members: results omit members that are None."""
    for name, member in schema.get("properties", {}).items():
        if name not in schema["required"] and "anyOf" in member:
            kinds = [one for one in member.pop("anyOf") if one != {"type": "null"}]
            member.pop("default", None)
            description = {} if "$ref" in kinds[0] else member
            schema["properties"][name] = description | (
                kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
            )
    return schema
