"""JSON schemas of the events: the leaf of the log, and the private face of one seat.

The public members are read from the types in `dealer.game.events`, under the names and in the forms
in which `dealer.proof.codec` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args, get_type_hints

from dealer.game.events import PRIVATE_FACE_TYPES, PROTOCOL, TYPES, RoundClosed, TableOpened
from dealer.gateway.schema.event_members import LEAF, OWN, PUBLIC
from dealer.gateway.schema.titles import FORMS, REF
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

HASH = FORMS["Hash"]
CODE = FORMS["CardCode"]
STACK = FORMS["StackName"]
NUMBER = FORMS["WholeNumber"]

_FORMS: dict[str, Schema] = {
    "algorithm": {"enum": ["backward", "forward"]},
    "by": {"title": "Remover", "enum": ["host", "service"]},
    "card": CODE,
    "entropy": {"enum": ["players", "house"]},
    "from": STACK,
    "kind": FORMS["NoteKind"],
    "rules": {"$ref": f"{REF}TableRules"},
    "stack": STACK,
    "to": STACK,
}
_TYPES: dict[type[Any], Schema] = {
    int: NUMBER,
    str: {"type": "string"},
    bytes: HASH,
    bool: {"type": "boolean"},  # true: false is left out
}


def object_of(
    title: str,
    properties: Mapping[str, Schema],
    *,
    optional: Collection[str] = (),
    received: bool = True,
) -> Schema:
    """The schema of an object; one that clients receive may have more members."""
    return {
        "title": title,
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": received,
    }


def event_schemas() -> dict[str, Schema]:
    """One schema for each type of event, and `Event`, which is any of them."""
    found = {name: _leaf(name, kind) for name, kind in TYPES.items()}
    found["Event"] = {
        "title": "Event",
        "description": "One event of a table's log; `type` says which.",
        "type": "object",
        "required": ["type"],
        "discriminator": {
            "propertyName": "type",
            "mapping": {name: REF + name for name in TYPES},
        },
        "oneOf": [{"$ref": REF + name} for name in TYPES],
    }
    return found


def _leaf(name: str, kind: type[Any]) -> Schema:
    properties: dict[str, Schema] = {
        "at": FORMS["LongNumber"],
        "public": _public(name, kind),
        "table": FORMS["TableId"],
        "type": {"type": "string", "const": name},
        "v": _schema_number(SCHEMAS[name]),
        "version": FORMS["VersionNumber"],
    }
    if kind.COMMITMENT != "never":
        properties["commit"] = HASH
    if name in PRIVATE_FACE_TYPES:
        face = {"card": CODE, "salt": HASH, "slot": NUMBER}
        properties["private"] = object_of("PrivateFace", _described(face, PUBLIC))
    optional = {"private"} if kind.COMMITMENT == "always" else {"private", "commit"}
    leaf = object_of(name, _described(properties, LEAF), optional=optional)
    return leaf | {"description": EVENTS[name]}


def _schema_number(number: int) -> Schema:
    """Exactly this number; generators make no type of a `const` that is not a text."""
    return {"title": "SchemaNumber", "type": "integer", "minimum": number, "maximum": number}


def _public(event: str, kind: type[Any]) -> Schema:
    hints = get_type_hints(kind)
    properties, optional = {}, set()
    for name, attribute in members(kind):
        kinds = [type_ for type_ in get_args(hints[attribute]) if type_ is not type(None)]
        if hints[attribute] is bool:
            optional.add(name)
        if type(None) in get_args(hints[attribute]):
            optional.add(name)
            (hints[attribute],) = kinds
        properties[name] = _FORMS.get(name) or _form(hints[attribute])
    if kind is RoundClosed:
        properties["secret"] = FORMS["Secret"]
    if kind is TableOpened:
        properties["protocol"] = {"type": "string", "const": PROTOCOL}
    own = {name: OWN.get(f"{event}.{name}", PUBLIC[name]) for name in properties}
    return object_of(f"{event}Public", _described(properties, own), optional=optional)


def _described(properties: Mapping[str, Schema], by_name: Mapping[str, str]) -> dict[str, Schema]:
    return {name: member | {"description": by_name[name]} for name, member in properties.items()}


def _form(hint: Any) -> Schema:
    if hint in _TYPES:
        return _TYPES[hint]
    of = get_args(hint)[0]
    return {"type": "array", "items": CODE if of is str else _form(of)}
