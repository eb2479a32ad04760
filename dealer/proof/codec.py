"""Events and the one way each of them is written down.

An event's public part is canonical JSON (JCS, see `canonical`) with the members that the table of
events in fairness.md names: numbers and strings as they are, bytes as lower-case hex. Its hidden
part is one member, `j` or `card`. The leaf of an event is the canonical object

    {"at":…,"commit":"…","public":{…},"table":"…","type":"…","v":…,"version":…}

with `commit` only where there is a hidden part. The leaf is written once and never again: upcasters
lift what is read for newer code, and leave the stored bytes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from json.encoder import encode_basestring
from typing import Any, get_args

from dealer.errors import UnknownEvent
from dealer.game.events import (
    PROTOCOL,
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardsSwapped,
    Event,
    TableOpened,
)
from dealer.proof.canonical import dump

quote = encode_basestring
"""A string as canonical JSON has it."""

Public = dict[str, Any]
Members = Mapping[str, Any]
Upcaster = Callable[[Members], Members]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type, v) → a pure function from the public part of schema v to that of v + 1."""

TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}

SCHEMAS: dict[str, int] = dict.fromkeys(TYPES, 1)
"""The schema number that each type is written with; every one has had one form so far."""

_BYTES = {"key", "commitment", "digest", "nonce", "salt", "secret"}
_HIDDEN = {CardsSwapped: "j", CardDrawn: "card", CardMoved: "card", CardPeeked: "card"}
_RENAMED = {"source": "from"}
_MEMBERS: dict[type[Any], list[tuple[str, str]]] = {
    kind: sorted(
        (_RENAMED.get(field.name, field.name), field.name)
        for field in fields(kind)
        if field.name != _HIDDEN.get(kind)
    )
    for kind in TYPES.values()
}


def members(kind: type[Any]) -> list[tuple[str, str]]:
    """The public members of a type of event, each with the attribute that holds it, in order."""
    return list(_MEMBERS[kind])


def encode_public(event: Event) -> str:
    """The public part of an event as canonical JSON text."""
    match event:
        case CardsSwapped(round_, k, step, i, _):
            return f'{{"i":{i},"k":{k},"round":{round_},"step":{step}}}'
        case CardDrawn(round_, seat, source, slot, _):
            quoted = quote(source)
            return f'{{"from":{quoted},"round":{round_},"seat":{seat},"slot":{slot}}}'
        case _:
            return dump(public(event))


def encode_swaps(swaps: Sequence[CardsSwapped]) -> tuple[list[str], list[str]]:
    """Public and hidden parts of the swaps of one shuffle, whose j are known."""
    shuffle = f'"k":{swaps[0].k},"round":{swaps[0].round},"step":'
    publics = [f'{{"i":{swap.i},{shuffle}{swap.step}}}' for swap in swaps]
    return publics, [f'{{"j":{swap.j}}}' for swap in swaps]


def public(event: Event) -> Public:
    """The public part of an event as an object of JSON values."""
    members: Public = {}
    for name, attribute in _MEMBERS[type(event)]:
        value = getattr(event, attribute)
        if value is None:
            continue
        if attribute in _BYTES:
            value = value.hex()
        elif attribute == "slots":
            value = [commitment.hex() for commitment in value]
        members[name] = value
    if isinstance(event, TableOpened):
        members["protocol"] = PROTOCOL
    return members


def encode_hidden(event: Event) -> str | None:
    """The hidden part of an event, canonical; None where it has none or this reader lacks it."""
    match event:
        case CardsSwapped(_, _, _, _, j) if j is not None:
            return f'{{"j":{j}}}'
        case CardDrawn() | CardMoved() if event.card is not None:
            return f'{{"card":{quote(event.card)}}}'
        case _:
            return None


def encode_face(event: CardPeeked) -> str:
    """The face that a seat was shown, as it is kept for that seat; no commitment covers it."""
    return f'{{"card":{quote(event.card or "")}}}'


def leaf(
    *, at: int, commit: str | None, public: str, table: str, type: str, v: int, version: int
) -> str:
    """The leaf's canonical text; `public` is canonical text itself, `commit` and `table` hex."""
    committed = "" if commit is None else f'"commit":"{commit}",'
    return (
        f'{{"at":{at},{committed}"public":{public},"table":"{table}",'
        f'"type":"{type}","v":{v},"version":{version}}}'
    )


def decode(type: str, v: int, public: Members, hidden: Members) -> Event:
    """The event that these parts say; `hidden` is empty for a reader who may not know it.

    Raises UnknownEvent for a type or schema that this program does not know, and for a part
    whose members are not those of its type.
    """
    read = _READERS.get(type)
    if read is None or not 1 <= v <= SCHEMAS[type]:
        raise UnknownEvent(
            f"The log holds an event {type!r} of schema {v}, which this version of dealer does not "
            "know; it was written by a newer one: upgrade this one."
        )
    try:
        for schema in range(v, SCHEMAS[type]):
            public = UPCASTERS[type, schema](public)
        return read(public, hidden)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownEvent(
            f"An event {type!r} in the log does not have the members of its type; the log is "
            "damaged or was written by another program."
        ) from error


def _read_swap(public: Members, hidden: Members) -> Event:
    return CardsSwapped(public["round"], public["k"], public["step"], public["i"], hidden.get("j"))


def _read_draw(public: Members, hidden: Members) -> Event:
    return CardDrawn(
        public["round"], public["seat"], public["from"], public["slot"], hidden.get("card")
    )


def _reader(kind: type[Any]) -> Callable[[Members, Members], Event]:
    secret = _HIDDEN.get(kind)
    plan = []
    for field in fields(kind):
        convert: Callable[[Any], Any] | None = None
        if field.name in _BYTES:
            convert = _bytes
        elif field.name == "slots":
            convert = _slots
        elif field.name == "deck":
            convert = tuple
        plan.append((_RENAMED.get(field.name, field.name), convert, field.name == secret))

    def read(public: Members, hidden: Members) -> Event:
        values = []
        for name, convert, is_hidden in plan:
            if is_hidden:
                values.append(hidden.get(name))
            elif convert is None:
                values.append(public[name])
            elif name == "key":
                values.append(convert(public.get(name)))
            else:
                values.append(convert(public[name]))
        event: Event = kind(*values)
        return event

    return read


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _slots(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, texts))


_READERS = {name: _reader(kind) for name, kind in TYPES.items()}
# Half of all events are swaps, and a game is draws: these are read without a plan.
_READERS |= {"CardsSwapped": _read_swap, "CardDrawn": _read_draw}
