"""JSON schemas of the events: the leaf of the log, and the private face of one seat.

The public members are read from the types in `dealer.game.events`, under the names and in the forms
in which `dealer.proof.codec` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args, get_type_hints

from dealer.game.events import PRIVATE_FACE_TYPES, PROTOCOL, TYPES, RoundClosed, TableOpened
from dealer.proof.codec import SCHEMAS, members

Schema = dict[str, Any]

EVENTS = {
    "TableOpened": "A table was opened; always version 1.",
    "SeatTaken": "A player took a seat.",
    "SeatLeft": "A player left the seat.",
    "SeatVacated": "The player of the seat was removed by the host, a service, or the server.",
    "HostTransferred": "The player of the seat became the host.",
    "NoteAdded": "A text was added by a seat, or by the host or a service (seat 0).",
    "RoundOpened": "A round was opened with a deck, bottom first, and the house's commitment.",
    "ShuffleStarted": "A shuffle was requested; players commit to their entropy.",
    "EntropyCommitted": "A seat committed to random bytes.",
    "EntropyClosed": "Commitments are closed; the house signs a checkpoint over this version.",
    "ShuffleVoided": "Committed bytes were not revealed in time; the shuffle does not take place.",
    "EntropyRevealed": "A seat revealed the bytes that it had committed to.",
    "CardsSwapped": "One step of a shuffle: places i and j exchanged their cards; j is hidden.",
    "DeckSealed": "A shuffle is over; each place got a slot with a commitment to its card.",
    "CardDrawn": "A seat drew a card; its face is for that seat.",
    "CardMoved": "A card moved from one stack to another.",
    "CardShown": "A card was turned face up for all.",
    "CardPeeked": "A card was shown to one seat.",
    "StackCut": "A stack was cut.",
    "RoundClosed": "The round is over, and the house's secret is public.",
    "TableClosed": "The table is closed permanently.",
}

HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
TABLE_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
CODE: Schema = {"type": "string", "minLength": 1, "maxLength": 16}
STACK: Schema = {"type": "string", "pattern": "^(deck|hand:[1-9][0-9]*|pile:[!-~]{1,32})$"}
SECRET: Schema = {"type": "string", "pattern": "^([0-9a-f]{64})+$"}
NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
TIME: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
VERSION: Schema = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}

NOTE_KIND: Schema = {"type": "string", "pattern": "^[a-z0-9._-]{1,64}$"}
REMOVER: Schema = {"type": "string", "enum": ["host", "service"]}

_FORMS = {
    "stack": STACK, "from": STACK, "to": STACK, "card": CODE, "kind": NOTE_KIND, "by": REMOVER,
}  # fmt: skip
_TYPES: dict[type[Any], Schema] = {
    int: NUMBER,
    str: {"type": "string"},
    bytes: HASH,
    bool: {"type": "boolean", "const": True},  # false is left out
}


def object_of(properties: Mapping[str, Schema], *, optional: Collection[str] = ()) -> Schema:
    """The schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def event_schemas() -> dict[str, Schema]:
    """One schema for each type of event, and `Event`, which is any of them."""
    found = {name: _leaf(name, kind) for name, kind in TYPES.items()}
    found["Event"] = {
        "title": "Event",
        "description": "One event of a table's log; `type` says which.",
        "type": "object",
        "required": ["type"],
        "discriminator": "type",
        "oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in TYPES],
    }
    return found


def _leaf(name: str, kind: type[Any]) -> Schema:
    properties: dict[str, Schema] = {
        "at": TIME,
        "public": _public(kind),
        "table": TABLE_ID,
        "type": {"type": "string", "const": name},
        "v": {"type": "integer", "const": SCHEMAS[name]},
        "version": VERSION,
    }
    if kind.COMMITMENT != "never":
        properties["commit"] = HASH | {"description": "commitment to the hidden part"}
    if name in PRIVATE_FACE_TYPES:
        shown = object_of({"card": CODE, "salt": HASH, "slot": NUMBER})
        properties["private"] = shown | {"description": "only for the seat that may see the face"}
    optional = {"private"} if kind.COMMITMENT == "always" else {"private", "commit"}
    leaf = object_of(properties, optional=optional)
    return {"title": name, "description": EVENTS[name]} | leaf


def _public(kind: type[Any]) -> Schema:
    hints = get_type_hints(kind)
    properties, optional = {}, set()
    for name, attribute in members(kind):
        kinds = [one for one in get_args(hints[attribute]) if one is not type(None)]
        if hints[attribute] is bool:
            optional.add(name)
        if type(None) in get_args(hints[attribute]):
            optional.add(name)
            (hints[attribute],) = kinds
        properties[name] = _FORMS.get(name) or _form(hints[attribute])
    if kind is RoundClosed:
        properties["secret"] = SECRET
    if kind is TableOpened:
        properties["protocol"] = {"type": "string", "const": PROTOCOL}
    return object_of(properties, optional=optional)


def _form(hint: Any) -> Schema:
    if hint in _TYPES:
        return _TYPES[hint]
    of = get_args(hint)
    if of[-1] is Ellipsis:
        return {"type": "array", "items": CODE if of[0] is str else _form(of[0])}
    return {"type": "object"}
