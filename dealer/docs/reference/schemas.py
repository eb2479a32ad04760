"""JSON schemas in words: the type of a value, and the members of an object as rows of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
Link = Callable[[str], str]
"""The text for a named schema, usually a link to it."""

MEMBERS = ("member", "type", "", "meaning")
"""The heading of a table of members."""


def named(schema: Schema) -> str | None:
    """The name of the schema that this one refers to, if it is a reference."""
    reference = schema.get("$ref")
    return None if reference is None else str(reference).rpartition("/")[2]


def kind(schema: Schema, link: Link) -> str:
    """The type of a value, in words and in one line."""
    if (name := named(schema)) is not None:
        return link(name)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind(form, link) for form in schema[several]))
    found = schema.get("type", "any")
    if isinstance(found, list):
        return " or ".join(kind({**schema, "type": type_}, link) for type_ in found)
    if found == "array":
        return _array(schema, link)
    return f"{found}{_bounds(schema) if found in ('string', 'integer', 'number') else ''}"


def members(
    schema: Schema,
    link: Link,
    *,
    prefix: str = "",
    named_schemas: Mapping[str, Schema] | None = None,
) -> Iterator[list[str]]:
    """A row for each member of an object, and for those of objects within it that have no name.

    With `named_schemas` those of named objects follow too.
    """
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        whole = f"{prefix}{name}"
        need = "required" if name in required else _default(member)
        yield [f"`{whole}`", kind(member, link), need, _description(member)]
        for inner, suffix in ((member, "."), (member.get("items", {}), "[].")):
            inside = (named_schemas or {}).get(named(inner) or "", inner) if inner else inner
            if inside.get("properties"):
                yield from members(
                    inside, link, prefix=f"{whole}{suffix}", named_schemas=named_schemas
                )


def _array(schema: Schema, link: Link) -> str:
    items = schema.get("items", schema.get("prefixItems", {}))
    if isinstance(items, list):
        return f"array of {', '.join(kind(item, link) for item in items)}"
    counted = _range(schema.get("minItems"), schema.get("maxItems"))
    return f"array of {counted + ' ' if counted else ''}{kind(items, link)}"


def _bounds(schema: Schema) -> str:
    """What a value must have besides its type, with a comma before it."""
    numbers = _range(schema.get("minimum"), schema.get("maximum"))
    lengths = _range(schema.get("minLength"), schema.get("maxLength"))
    pattern = schema.get("pattern")
    found = [numbers, f"{lengths} characters" if lengths else "", f"`{pattern}`" if pattern else ""]
    return "".join(f", {part}" for part in found if part)


def _range(least: int | None, most: int | None) -> str:
    if least is None and most is None:
        return ""
    if least == most:
        return str(least)
    if most is None:
        return f"at least {least}"
    return f"at most {_number(most)}" if least is None else f"{least} to {_number(most)}"


def _number(value: int) -> str:
    """A number; one below a power of two as such."""
    above = value + 1
    power = above.bit_length() - 1
    return f"2^{power} − 1" if power > 16 and above == 1 << power else f"{value:,}"


def _default(schema: Schema) -> str:
    return f"default `{json.dumps(schema['default'])}`" if schema.get("default") is not None else ""


def _description(schema: Schema) -> str:
    """The description, without angle brackets that HTML would swallow."""
    return re.sub(r"<(?=[^`]*(?:`[^`]*`[^`]*)*$)", "&lt;", str(schema.get("description", "")))
