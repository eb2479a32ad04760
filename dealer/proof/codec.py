"""Codec of events: each event has exactly one byte representation.

An event's public part is canonical JSON (JCS, see `canonical`) with the fields of its class in
`dealer.game.events`, except the hidden one (`source` is the member `from`): numbers and strings as
they are, bytes as lower-case hex. Its hidden part is one member, `j` or `card`. The members of its
opened part are public, too, but not in its leaf (`opened`). The leaf of an event is the canonical
object

    {"at":…,"commit":"…","public":{…},"table":"…","type":"…","v":…,"version":…}

with `commit` only if a hidden or opened part is committed to. A stored leaf is never rewritten:
upcasters convert the decoded public part for newer code and leave the stored bytes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from json.encoder import encode_basestring
from typing import Any

from dealer.errors import UnknownEvent
from dealer.game import events
from dealer.game.events import FORGOTTEN, OPENED_TYPES, PROTOCOL, TYPES, Event, EventType
from dealer.proof.canonical import dump

quote = encode_basestring
"""A string as canonical JSON text."""

Public = dict[str, Any]
Members = Mapping[str, Any]
Upcaster = Callable[[Members], Members]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = {}
"""(type, v) → a pure function from the public part in schema v to schema v + 1."""

SCHEMAS: dict[str, int] = {name: 1 + (name in OPENED_TYPES) for name in TYPES}
"""The schema number under which each type is written: 2 of those with an opened part, else 1."""

WITHHELD = {"name": FORGOTTEN, "reason": "", "text": ""}
"""What an event has in place of the members of an opened part that is withheld."""

_BYTES = {"key", "commitment", "digest", "nonce", "salt", "secret"}
_RENAMED = {"source": "from"}
_MEMBERS: dict[type[EventType], list[tuple[str, str]]] = {
    kind: sorted(
        (_RENAMED.get(field.name, field.name), field.name)
        for field in fields(kind)  # type: ignore[arg-type]
        if field.name != kind.HIDDEN
    )
    for kind in TYPES.values()
}


def members(kind: type[EventType]) -> list[tuple[str, str]]:
    """(public member, attribute that holds its value) of a type of event, in canonical order."""
    return list(_MEMBERS[kind])


def encode_public(event: Event) -> str:
    """The public part of an event as canonical JSON text."""
    match event:
        case events.CardsSwapped(round=round_, k=k, step=step, i=i):
            return f'{{"i":{i},"k":{k},"round":{round_},"step":{step}}}'
        case events.CardDrawn(round=round_, seat=seat, source=source, slot=slot):
            return f'{{"from":{quote(source)},"round":{round_},"seat":{seat},"slot":{slot}}}'
        case _:
            return dump(public(event))


def encode_swaps(swaps: Sequence[events.CardsSwapped]) -> tuple[list[str], list[str]]:
    """Public parts and hidden parts of the swaps of one shuffle; every j must be known."""
    shuffle = f'"k":{swaps[0].k},"round":{swaps[0].round},"step":'
    publics = [f'{{"i":{swap.i},{shuffle}{swap.step}}}' for swap in swaps]
    return publics, [f'{{"j":{swap.j}}}' for swap in swaps]


def public(event: Event) -> Public:
    """The public part of an event as an object of JSON values."""
    members: Public = {}
    for name, attribute in _MEMBERS[type(event)]:
        value = getattr(event, attribute)
        if value is None or value is False:
            continue
        if attribute in _BYTES:
            value = value.hex()
        elif attribute == "slots":
            value = [commitment.hex() for commitment in value]
        members[name] = value
    if isinstance(event, events.TableOpened):
        members["protocol"] = PROTOCOL
    return members


def encode_hidden(event: Event) -> str | None:
    """The canonical hidden part that the leaf commits to; None if absent or not known here."""
    match event:
        case events.CardsSwapped(j=j) if j is not None:
            return f'{{"j":{j}}}'
        case events.CardDrawn() | events.CardMoved() if event.card is not None:
            return f'{{"card":{quote(event.card)}}}'
        case _:
            return None


def encode_face(event: events.CardPeeked) -> str:
    """The face that a seat was shown, as it is stored for that seat; no leaf commits to it."""
    return f'{{"card":{quote(event.card or "")}}}'


def leaf(
    *, at: int, commit: str | None, public: str, table: str, type: str, v: int, version: int
) -> str:
    """Canonical text of a leaf; `public` is canonical text, `commit` and `table` are hex."""
    committed = "" if commit is None else f'"commit":"{commit}",'
    return (
        f'{{"at":{at},{committed}"public":{public},"table":"{table}",'
        f'"type":"{type}","v":{v},"version":{version}}}'
    )


def decode(type: str, v: int, public: Members, hidden: Members) -> Event:
    """The event with these parts; `hidden` is empty for a reader who may not know it.

    `public` has the opened part, too, unless that is withheld: then see `WITHHELD`. Raises
    UnknownEvent for an unknown type or schema, and for parts without the members of the type.
    """
    read = _READERS.get(type)
    if read is None or not 1 <= v <= SCHEMAS[type]:
        raise UnknownEvent(
            f"The log contains an event {type!r} of schema {v}, which this version of dealer does "
            "not know. A newer version wrote it: upgrade this one."
        )
    try:
        for schema in range(v, SCHEMAS[type]):
            public = UPCASTERS[type, schema](public)
        return read(public, hidden)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownEvent(
            f"An event {type!r} in the log does not have the members of its type: the log is "
            "damaged, or another program wrote it."
        ) from error


def _read_swap(public: Members, hidden: Members) -> Event:
    return events.CardsSwapped(
        public["round"], public["k"], public["step"], public["i"], hidden.get("j")
    )


def _read_draw(public: Members, hidden: Members) -> Event:
    return events.CardDrawn(
        public["round"], public["seat"], public["from"], public["slot"], hidden.get("card")
    )


def _reader(kind: type[Any]) -> Callable[[Members, Members], Event]:
    """A function that builds an event of this type from its public and hidden members."""
    plan = [
        (_RENAMED.get(field.name, field.name), _CONVERT.get(field.name), field.name == kind.HIDDEN)
        for field in fields(kind)
    ]
    absent = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    absent = {name: WITHHELD[name] for name in kind.OPENED if name in WITHHELD} | absent

    def read(public: Members, hidden: Members) -> Event:
        values = []
        for name, convert, is_hidden in plan:
            if is_hidden:
                values.append(hidden.get(name))
            elif name in absent and name not in public:
                values.append(absent[name])
            elif convert is None:
                values.append(public[name])
            else:
                values.append(convert(public[name]))
        event: Event = kind(*values)
        return event

    return read


def _slots(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, texts))


_CONVERT: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_BYTES, bytes.fromhex),
    "slots": _slots,
    "deck": tuple,
}
_READERS = {name: _reader(kind) for name, kind in TYPES.items()}
# Most events are swaps and draws: these have specialised readers for speed.
_READERS |= {"CardsSwapped": _read_swap, "CardDrawn": _read_draw}
