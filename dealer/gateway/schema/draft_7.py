"""JSON Schema draft 7, which the OpenRPC and the AsyncAPI document use."""

from __future__ import annotations

from typing import Any


def as_draft_7(schema: Any) -> Any:
    """Convert a schema of msgspec to draft 7, where a tuple's items are under `items`."""
    if isinstance(schema, list):
        return [as_draft_7(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: as_draft_7(value) for name, value in schema.items()}
    if "prefixItems" in found:
        found |= {"items": found.pop("prefixItems"), "additionalItems": False}
    if found.get("enum") == [True]:  # generators cannot read a constant that is not a text
        del found["enum"]
        found["type"] = "boolean"
    return found
