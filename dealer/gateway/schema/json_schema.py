"""JSON schemas (draft 7) of the types of the protocol, with a title and a description for each.

`msgspec` derives the schemas. Programs that generate code from them need more, which is added here:

- a title for every schema, by which they name a type: the one in the type's `Meta`, or one for
  its form (`_derived`); without, they invent names such as `Public1`;
- a component, which is a schema to refer to, for every object, enumeration and union, and for texts
  and numbers with limits in lists and unions. Other texts and numbers stay where they are, because
  a type for each would be in the way;
- no null where a member may be left out: who has no value leaves it out. Results omit such members,
  and in parameters null is accepted and means the same;
- the description of every member, from the text in its `Annotated`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Struct

from dealer.gateway.wire.types import REF

Schema = dict[str, Any]

_OF_KIND = {"integer": "Integer", "string": "Text", "boolean": "Flag", "null": "Null"}
_LIMITS = {"maximum", "maxLength", "maxItems", "pattern"}
_NULL = {"type": "null"}


def schemas(kinds: Iterable[type[Any]]) -> dict[str, Schema]:
    """The schemas of Structs and TypedDicts and of all their parts that are components, by title.

    Raises LookupError for a type without a title, or a member without a description, and ValueError
    for two schemas with the same title.
    """
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, found = msgspec.json.schema_components(ordered, ref_template=REF + "{name}")
    titles = _Titles()
    for name, members in _members(ordered).items():
        titles.add_object(as_draft_7(found[name]), members)
    return titles.components


def struct(
    title: str,
    description: str,
    members: Mapping[str, Any],
    optional: Collection[str] = (),
    *,
    received: bool = True,
) -> type[Struct]:
    """A type for `schemas` alone: an object that clients `received` or send, by its members' types.

    One that they receive may have more members in later releases.
    """
    fields = [
        (name, kind | None, None) if name in optional else (name, kind)
        for name, kind in members.items()
    ]
    namespace = {"__doc__": description}
    return msgspec.defstruct(
        title, fields, namespace=namespace, kw_only=True, forbid_unknown_fields=not received
    )


def said(hint: Any) -> str | None:
    """The text in `Annotated` that says what a member means: its own, or its type's."""
    texts = [text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)]
    if texts:
        return texts[-1]
    if get_origin(hint) not in (Annotated, NotRequired, Union, UnionType):
        return None  # what is said of an item is not said of the list
    return next((text for part in get_args(hint) if (text := said(part))), None)


def first_paragraph(kind: type[Any]) -> str:
    """The beginning of a docstring, which is published of an event and of a refusal."""
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def reference(title: str) -> Schema:
    """A schema that refers to a component."""
    return {"$ref": REF + title}


def pascal(name: str) -> str:
    """A name of the protocol as a title: `table.transfer_host` is TableTransferHost."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^0-9A-Za-z]+", name))


def as_draft_7(schema: Any) -> Any:
    """Convert a schema of msgspec to draft 7, with the type of choices."""
    if isinstance(schema, list):
        return [as_draft_7(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: Schema = {name: as_draft_7(value) for name, value in schema.items()}
    if "prefixItems" in found:
        found |= {"items": found.pop("prefixItems"), "additionalItems": False}
    choices = found.get("enum")
    if choices:
        found["type"] = "integer" if isinstance(choices[0], int) else "string"
        if len(choices) == 1:
            (found["const"],) = found.pop("enum")
    return found


def _members(kinds: Iterable[type[Any]]) -> dict[str, dict[str, str | None]]:
    """What is said of each member, by the names of the type and of the member.

    Also of the types in these types.
    """
    found: dict[str, dict[str, str | None]] = {}
    waiting: list[Any] = list(kinds)
    while waiting:
        kind = waiting.pop()
        is_struct = isinstance(kind, type) and issubclass(kind, Struct)
        if not (is_struct or is_typeddict(kind)) or kind.__name__ in found:
            continue
        hints = get_type_hints(kind, include_extras=True)
        names = {}
        if is_struct:
            names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        found[kind.__name__] = {names.get(name, name): said(hint) for name, hint in hints.items()}
        waiting += [part for hint in hints.values() for part in _parts(hint)]
    return found


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


class _Titles:
    """Gives titles, and collects the components."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}

    def add_object(self, schema: Schema, members: dict[str, str | None]) -> None:
        """Add the component of a Struct or TypedDict; `members` has what is said of its members."""
        properties = {}
        for name, member in schema.get("properties", {}).items():
            if name.startswith("x-"):
                continue  # an extension of OpenRPC, and no name in programs
            text = members[name]
            if text is None:
                raise LookupError(f"{schema['title']}.{name} has no description.")
            properties[name] = self._member(member, text, name in schema["required"])
        found: Schema = {"additionalProperties": True} | schema | {"properties": properties}
        found["required"] = [name for name in schema.get("required", ()) if name in properties]
        if "description" in schema:
            found["description"] = inspect.cleandoc(schema["description"])
        self._component(found)

    def _member(self, schema: Schema, text: str, required: bool) -> Schema:
        """A member; the description says the default beside a `$ref`: draft 7 has none there."""
        if not required and _NULL in schema.get("anyOf", ()) and "title" not in schema:
            kinds = [kind for kind in schema["anyOf"] if kind != _NULL]
            schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        default = schema.get("default")
        found = self._of(schema) | {"description": text}
        if default is not None:
            if "$ref" in found:
                found["description"] += f"; by default `{default}`"
            else:
                found["default"] = default
        return found

    def _of(self, schema: Schema) -> Schema:
        """The schema with titles throughout, or the reference to what became a component."""
        if "$ref" in schema:
            return {"$ref": schema["$ref"]}
        found = dict(schema)
        for name in ("additionalProperties", "items", "anyOf"):
            if isinstance(schema.get(name), dict):
                found[name] = self._in_several(schema[name])
            elif isinstance(schema.get(name), list):
                found[name] = [self._in_several(item) for item in schema[name]]
        if _NULL in schema.get("anyOf", ()) and "title" not in schema:
            # A member that is there, but may be null.
            (kind,) = (self._of(item) for item in schema["anyOf"] if item != _NULL)
            return {"title": f"Nullable{_title(kind)}", "anyOf": [kind, _NULL | {"title": "Null"}]}
        found = {"title": _derived(found)} | found
        if {"anyOf", "enum"} & set(found):
            return self._component(found)
        return {
            name: value for name, value in found.items() if name not in ("description", "default")
        }

    def _in_several(self, schema: Schema) -> Schema:
        """A kind in a union or the items of a list: generators make a type for its limits."""
        found = self._of(schema)
        if _LIMITS & set(found):
            return self._component({"title": found["title"]} | schema | found)
        return found

    def _component(self, schema: Schema) -> Schema:
        title = schema["title"]
        kept = {name: value for name, value in schema.items() if name != "default"}
        if self.components.setdefault(title, kept) != kept:
            raise ValueError(f"{title} is the title of two schemas.")
        return reference(title)


def _derived(schema: Schema) -> str:
    """The title of a schema: its own, or one for its form."""
    match schema:
        case {"title": str(title)}:
            return title
        case {"const": value}:
            return f"{pascal(str(value))}Constant"
        case {"type": "array", "items": dict(items)}:
            return f"{_title(items)}List"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"MapOf{_title(values)}"
        case {"type": "object"}:
            return "AnyObject"
        case {"type": kind} if set(schema) <= {"type", "description", "default"}:
            return _OF_KIND[kind]
    raise LookupError(f"This has no title: {schema}.")


def _title(schema: Schema) -> str:
    return str(schema.get("title") or schema["$ref"].removeprefix(REF))
