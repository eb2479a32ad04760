"""A title for every schema, and a component for every one of which programs make a type.

Generators of code name types after titles, and invent names such as `Public1` where there is none.
Objects, enumerations and unions become components, once each; numbers, strings and arrays stay
where they are, because a type for each would be in the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dealer.game.cards import DECK_MAX, SHOE_MAX
from dealer.game.names import NAME_MAX
from dealer.game.rules import SEATS_MAX, WAIT_MS_MAX, WAIT_MS_MIN
from dealer.gateway.schema.draft_7 import as_draft_7
from dealer.gateway.wire import params as p

Schema = dict[str, Any]

REF = "#/components/schemas/"


def _text(least: int | None, most: int) -> Schema:
    return {"type": "string", "maxLength": most} | ({} if least is None else {"minLength": least})


def _number(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _matching(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


FORMS: dict[str, Schema] = {
    "CardCode": _text(1, 16),
    "CardCount": _number(1, DECK_MAX),
    "CardCountOrNone": _number(0, DECK_MAX),
    "DeckCount": _number(1, SHOE_MAX),
    "Hash": _matching("^[0-9a-f]{64}$"),
    "JokerCount": _number(0, 2),
    "JwtText": _text(None, 8_192),
    "LongNumber": _number(0, 2**53 - 1),
    "NoteKind": _matching("^[a-z0-9._-]{1,64}$"),
    "NoteText": _text(None, 2_048),
    "PackName": _matching("^[a-z0-9-]{1,64}$"),
    "PageSize": _number(1, 200),
    "SeatCount": _number(1, SEATS_MAX),
    "Secret": _matching("^([0-9a-f]{64})+$"),
    "ShortText": _text(None, 256),
    "SignatureText": _text(None, 1_024),
    "StackName": _matching("^(deck|hand:[1-9][0-9]*|pile:[!-~]{1,32})$"),
    "StackReference": _text(1, 37),
    "TableId": _matching("^[0-9a-f]{32}$"),
    "TableName": _text(1, NAME_MAX),
    "TicketSeconds": _number(1, 30 * 86_400),
    "TicketText": _text(None, 3_100),
    "VersionNumber": _number(1, 2**53 - 1),
    "WaitMs": _number(WAIT_MS_MIN, WAIT_MS_MAX),
    "WholeNumber": _number(0, 2**32 - 1),
}
"""Texts and numbers by title."""

_TYPES: Mapping[str, Any] = {
    "Algorithm": Literal["backward", "forward"],
    "CardCodes": p.Codes,
    "CardOrSlot": p.Code | p.Number,
    "CardsOrSlots": p.Cards,
    "CommandId": p.Cmd,
    "Deck": p.Deck,
    "DeckName": Literal["52", "54"],
    "EntropySource": Literal["players", "house"],
    "Face": p.Face,
    "NumberedHash": tuple[int, str],
    "OpenedSlot": tuple[int, str, str],
    "PlaceOfCards": p.Where,
    "ServiceReference": p.Ref,
    "StackEnd": Literal["top", "bottom"],
    "StackEndOrRandom": p.End,
    "SubjectText": p.Subject,
    "TableCondition": Literal["open", "closed", "archived"],
}
"""Types of parameters and results by title."""

_OF_KIND = {"integer": "Integer", "string": "Text", "boolean": "Flag", "null": "Null"}
_OF_A_MEMBER = ("description", "default")


def form(schema: Schema) -> str:
    """Equal for two schemas that accept the same values: everything but title and description."""
    kept = {name: value for name, value in schema.items() if name not in ("title", *_OF_A_MEMBER)}
    if "enum" in kept:
        kept = {"enum": sorted(kept["enum"], key=str)}
    for name in ("anyOf", "items"):
        if name in kept:
            of = kept[name]
            kept[name] = [form(item) for item in of] if isinstance(of, list) else form(of)
    return json.dumps(kept, sort_keys=True)


def _form_of(kind: Any) -> str:
    schema = as_draft_7(msgspec.json.schema(kind, ref_template=REF + "{name}"))
    schema.pop("$defs", None)
    return form(schema)


TITLES = {_form_of(kind): title for title, kind in _TYPES.items()} | {
    form(schema): title for title, schema in FORMS.items()
}
"""Titles by form: a form has the same title wherever it occurs."""


class Titles:
    """Gives titles, and collects in `components` those that it makes, each with a description.

    `described` has the descriptions of components by title.
    """

    def __init__(self, described: Mapping[str, str]) -> None:
        self.components: dict[str, Schema] = {}
        self._described = described

    def within(self, schema: Schema) -> Schema:
        """The schema with titles for all schemas that it contains."""
        found = dict(schema)
        if "properties" in schema:
            found["properties"] = {
                name: self.of(member) for name, member in schema["properties"].items()
            }
        for name in ("additionalProperties", "items"):
            if isinstance(schema.get(name), dict):
                found[name] = self._one_of_several(schema[name])
        for name in ("anyOf", "items"):
            if isinstance(schema.get(name), list):
                found[name] = [self._one_of_several(form) for form in schema[name]]
        return found

    def _one_of_several(self, schema: Schema) -> Schema:
        """A kind in a union or the items of an array: generators make a type for its limits."""
        found = self.of(schema)
        limited = {"maximum", "maxLength", "maxItems", "pattern"} & set(found)
        return self._component(found) if limited else found

    def of(self, schema: Schema) -> Schema:
        """The schema with titles throughout, or the reference to what became a component."""
        if "$ref" in schema:
            return schema
        if {"type": "null"} in schema.get("anyOf", ()):
            return self._or_null(schema)
        found = self.within(schema)
        title = schema.get("title") or TITLES.get(form(schema)) or _derived(found)
        found = {"title": title} | found
        if "const" in found or "enum" in found:
            value = found["const"] if "const" in found else found["enum"][0]
            kinds = {bool: "boolean", int: "integer", str: "string"}
            found.setdefault("type", kinds[type(value)])
        if {"anyOf", "enum", "properties"} & set(found):
            return self._component(found)
        return found

    def _or_null(self, schema: Schema) -> Schema:
        """A member that is there, but may be null."""
        (form,) = (self.of(form) for form in schema["anyOf"] if form != {"type": "null"})
        null = {"title": "Null", "type": "null"}
        return {"title": f"Nullable{_title(form)}"} | schema | {"anyOf": [form, null]}

    def _component(self, schema: Schema) -> Schema:
        """The reference to a component, with the description of the member."""
        title = schema["title"]
        kept = {name: value for name, value in schema.items() if name not in _OF_A_MEMBER}
        described = {"title": title, "description": self._described[title]} | kept
        if form(self.components.setdefault(title, described)) != form(described):
            raise ValueError(f"{title} is the title of two schemas.")
        return reference(title, schema.get("description"), schema.get("default"))


def reference(title: str, description: str | None = None, default: str | None = None) -> Schema:
    """A `$ref`; its default is a part of the description, as draft 7 knows none beside a `$ref`."""
    found = {"$ref": REF + title}
    if description is not None:
        said = "" if default is None else f"; by default `{default}`"
        found["description"] = description + said
    return found


def _derived(schema: Schema) -> str:
    """The title of a schema without a form of its own."""
    match schema:
        case {"const": value}:
            return f"{pascal(str(value))}Constant"
        case {"type": "array", "items": dict(items)}:
            return f"{_title(items)}List"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"MapOf{_title(values)}"
        case {"type": "object"}:
            return "AnyObject"
        case {"type": kind} if set(schema) <= {"type", *_OF_A_MEMBER}:
            return _OF_KIND[kind]
    raise LookupError(f"This has no title: {schema}.")


def pascal(name: str) -> str:
    """A name of the protocol as a title: `table.transfer_host` is TableTransferHost."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^0-9A-Za-z]+", name))


def _title(schema: Schema) -> str:
    found: str = schema["title"] if "title" in schema else schema["$ref"].removeprefix(REF)
    return found
