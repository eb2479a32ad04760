"""Check `form`: the syntax of each line, independent of the state of the game.

It covers what can be seen from a line and its position in the file:

- line 0 is the header, then come leaves, then openings, then checkpoints; each is its own
  canonical form;
- a leaf has its members and no others, and so has the public part of its type, `v` is that of its
  type; values have the types of the table of events: numbers below 2^32, seats and rounds from 1,
  bytes in lower-case hex, stacks, codes, a deck (1…1024 distinct codes of one length), the two
  words of `entropy` and of `algorithm`, the texts of notes that only the server writes;
- `commit` is present in CardsSwapped, CardDrawn, CardMoved to a hand, SeatTaken, SeatVacated, and
  NoteAdded without a public text; it may be in TableOpened, and is in no other event;
- a leaf's `version` is its line, its `table` that of the header's origin, its `at` not below that
  of the line before; line 1 is TableOpened, and no other line is;
- an opening has its members and no others; they are in ascending order of versions, whose leaves
  have an opened part. What it opens is checked with the event (`secrets`).

Conditions that depend on other members or lines are checked with the event: whether a stack may be
a hand, the number of steps of a shuffle, the length of a secret, the number of slots of a seal. The
content of notes is checked with the heads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dealer.errors import BadRequest, NotCanonical, ProofFault
from dealer.game.cards import check_deck
from dealer.game.events import PROTOCOL
from dealer.game.stacks import is_stack, seat_of
from dealer.proof.canonical import decode, encode
from dealer.proof.checkpoint import is_origin, table_of
from dealer.proof.opened import opened_commitment
from dealer.proof.tree import leaf_hash

Public = dict[str, Any]
Fits = Callable[[Any], bool]
Progress = Callable[[int], None]


class Leaf(NamedTuple):
    """A parsed leaf; `version` is also its line number, `hash` its leaf hash in the tree.

    `public` has the opened part, too, unless that is withheld. `fault` is what the check `secrets`
    says of the opening, empty for nothing.
    """

    version: int
    at: int
    type: str
    public: Public
    commit: str | None
    hash: bytes
    fault: str = ""

    @property
    def has_part(self) -> bool:
        """Whether the event has an opened part."""
        return self.commit is not None and self.type in _OPENED

    def open(self, table: str, part: Any, salt: Any) -> Leaf:
        """This leaf with the part that an opening says, if it is the one committed to.

        `table` is the table's id in hex. Raises NotCanonical for what no opening can have.
        """
        encode(part)
        wanted = opened_commitment(
            table=bytes.fromhex(table), version=self.version, salt=bytes.fromhex(salt), part=part
        )
        if wanted.hex() != self.commit:
            return self._replace(fault=_OTHER_PART)
        if not _is_part(part, *_OPENED[self.type]):
            return self._replace(fault=_NO_PART)
        return self._replace(public=self.public | part, fault="")


_OTHER_PART = "The opening does not match the commitment of this event."
_NO_PART = "The opened part does not have the members of its type."
_MISSING = "The opening of this event is missing: only of a closed table may one be withheld."


class Parts(NamedTuple):
    """A parsed bundle; `notes` are (line number, note) pairs, `withheld` leaves not opened."""

    key: str
    origin: str
    leaves: list[Leaf]
    notes: list[tuple[int, str]]
    withheld: list[Leaf]


def _number(value: Any) -> bool:
    return type(value) is int and value < 2**32


def _from_one(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**32


def _of_type(kind: type) -> Fits:
    return lambda value: type(value) is kind


def _matching(pattern: str) -> Fits:
    fullmatch = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and fullmatch(value) is not None


def _one_of(*words: str) -> Fits:
    return lambda value: type(value) is str and value in words


def _is_deck(value: Any) -> bool:
    if type(value) is not list:
        return False
    try:
        check_deck(value)
    except BadRequest:
        return False
    return True


def _is_card(value: Any) -> bool:
    return _is_deck([value])


def _is_stack(value: Any) -> bool:
    return type(value) is str and is_stack(value)


def _hashes(value: Any) -> bool:
    return type(value) is list and all(map(_hash, value))


def _text_up_to(most: int) -> Fits:
    """A string of at most `most` bytes of UTF-8."""
    return lambda value: type(value) is str and len(value.encode()) <= most


def _true(value: Any) -> bool:
    return value is True


_integer, _text, _object = _of_type(int), _of_type(str), _of_type(dict)
_hash = _matching("[0-9a-f]{64}")
_table = _matching("[0-9a-f]{32}")


def _is_origin(value: Any) -> bool:
    return type(value) is str and is_origin(value)


HEADER: Mapping[str, Fits] = {"bundle": _one_of(PROTOCOL), "key": _hash, "origin": _is_origin}

_IN_ROUND: Mapping[str, Fits] = {"round": _from_one}
_IN_SHUFFLE: Mapping[str, Fits] = {"round": _from_one, "k": _number}

PUBLIC: Mapping[str, Mapping[str, Fits]] = {
    "TableOpened": {
        "protocol": _one_of(PROTOCOL),
        "origin": _is_origin,
        "key": _hash,
        "rules": _object,
    },
    "SeatTaken": {"seat": _from_one},
    "SeatLeft": {"seat": _from_one},
    "SeatVacated": {"seat": _from_one, "by": _one_of("host", "service")},
    "HostTransferred": {"seat": _from_one},
    "NoteAdded": {"seat": _number, "kind": _matching("[a-z0-9._-]{1,64}")},
    "RoundOpened": {
        **_IN_ROUND,
        "deck": _is_deck,
        "entropy": _one_of("players", "house"),
        "commit_ms": _number,
        "reveal_ms": _number,
        "commitment": _hash,
    },
    "ShuffleStarted": {
        **_IN_SHUFFLE,
        "stack": _is_stack,
        "n": _number,
        "algorithm": _one_of("backward", "forward"),
        "steps": _number,
    },
    "EntropyCommitted": {**_IN_SHUFFLE, "seat": _from_one, "digest": _hash},
    "EntropyClosed": _IN_SHUFFLE,
    "ShuffleVoided": _IN_SHUFFLE,
    "EntropyRevealed": {**_IN_SHUFFLE, "seat": _from_one, "nonce": _hash},
    "CardsSwapped": {**_IN_SHUFFLE, "step": _number, "i": _number},
    "DeckSealed": {**_IN_SHUFFLE, "first": _number, "slots": _hashes},
    "CardDrawn": {**_IN_ROUND, "seat": _from_one, "from": _is_stack, "slot": _number},
    "CardMoved": {
        **_IN_ROUND,
        "slot": _number,
        "from": _is_stack,
        "to": _is_stack,
        "place": _number,
    },
    "CardShown": {**_IN_ROUND, "slot": _number, "card": _is_card, "salt": _hash},
    "CardPeeked": {**_IN_ROUND, "slot": _number, "seat": _from_one},
    "StackCut": {**_IN_ROUND, "stack": _is_stack, "at": _number},
    "RoundClosed": {**_IN_ROUND, "secret": _matching("(?:[0-9a-f]{2})+")},
    "TableClosed": {},
}

_OPTIONAL: Mapping[str, Mapping[str, Fits]] = {"SeatTaken": {"bot": _true}}

_SEATS = _matching("[1-9][0-9]{0,9}-[1-9][0-9]{0,9}")
_SERVER_NOTES: Mapping[object, Fits] = {
    "take_back": _matching("[1-9][0-9]{0,14}(?:-[1-9][0-9]{0,14})?"),
    "seat_move": _SEATS,
    "seat_offer": _SEATS,
    "program": _matching("[ -~]{1,256}"),
}
"""The kinds of notes with a public text, which only the server writes."""

_OPENED: Mapping[str, tuple[Mapping[str, Fits], Mapping[str, Fits]]] = {
    "TableOpened": ({"name": _text}, {}),
    "SeatTaken": ({"name": _text}, {"key": _hash}),
    "SeatVacated": ({"reason": _text_up_to(256)}, {}),
    "NoteAdded": ({"text": _text_up_to(2048)}, {}),
}
"""The members of opened parts, required and optional, by type; these types have schema 2."""

_OPENING: Mapping[str, Fits] = {"opened": _object, "salt": _hash, "version": _integer}

_LEAF: Mapping[str, Fits] = {
    "at": _integer,
    "public": _object,
    "table": _table,
    "type": _one_of(*PUBLIC),
    "v": _integer,
    "version": _integer,
}


def read(lines: Sequence[object], progress: Progress) -> Parts:
    """Parse a bundle; raises the ProofFault `form` of the first malformed line."""
    if not lines:
        raise ProofFault("form", 0, "There is no header: the bundle is empty.")
    _, header = _decode(0, lines[0])
    _check(0, "The header", header, HEADER, {})
    parts = Parts(header["key"], header["origin"], [], [], [])
    table = table_of(parts.origin)
    at = last = 0
    for line in range(1, len(lines)):
        raw, members = _decode(line, lines[line])
        if type(members) is dict and "checkpoint" in members:
            _check(line, "A checkpoint's line", members, {"checkpoint": _text}, {})
            parts.notes.append((line, members["checkpoint"]))
        elif parts.notes:
            raise ProofFault("form", line, "Only checkpoints may follow a checkpoint.")
        elif type(members) is dict and "opened" in members:
            last = _open(line, members, last, table, parts.leaves)
        elif last:
            raise ProofFault("form", line, "Only openings and checkpoints may follow an opening.")
        else:
            check_leaf(line, members, table, at)
            type_, public, at = members["type"], members["public"], members["at"]
            hash_ = leaf_hash(raw)
            leaf = Leaf(line, at, type_, public, members.get("commit"), hash_)
            parts.leaves.append(leaf._replace(fault=_MISSING) if leaf.has_part else leaf)
        progress(line)
    if not parts.leaves:
        raise ProofFault("form", 1, "There is no TableOpened: the bundle has no leaf.")
    if parts.leaves[-1].type == "TableClosed":
        parts.withheld.extend(leaf for leaf in parts.leaves if leaf.fault == _MISSING)
        for leaf in parts.withheld:
            parts.leaves[leaf.version - 1] = leaf._replace(fault="")
    return parts


def _open(line: int, members: Any, last: int, table: str, leaves: list[Leaf]) -> int:
    """Open the leaf that an opening names; `last` is the version of the opening before it."""
    _check(line, "An opening", members, _OPENING, {})
    version: int = members["version"]
    if version <= last:
        raise ProofFault("form", line, "Openings are ordered by version, at most one for each.")
    if version > len(leaves) or not leaves[version - 1].has_part:
        raise ProofFault("form", line, f"Version {version} has no opened part.")
    leaves[version - 1] = leaves[version - 1].open(table, members["opened"], members["salt"])
    return version


def _decode(line: int, text: object) -> tuple[bytes, Any]:
    """The bytes of a line and its decoded value."""
    try:
        raw = text.encode() if isinstance(text, str) else text
        if not isinstance(raw, bytes):
            raise NotCanonical("A line is text.")
        return raw, decode(raw, newlines=raw.startswith(b'{"checkpoint":'))
    except UnicodeEncodeError:
        raise ProofFault("form", line, "The line contains half of a surrogate pair.") from None
    except NotCanonical as error:
        raise ProofFault("form", line, str(error)) from error


def check_leaf(line: int, members: Any, table: str, at: int) -> None:
    """Check a leaf at `line`, which is its version; `at` is the time of the leaf before it.

    `table` is the hex id of the table. Raises the ProofFault `form`.
    """
    _check(line, "A leaf", members, _LEAF, {"commit": _hash})
    type_, public, committed = members["type"], members["public"], "commit" in members
    required, optional = _public(type_, public), _OPTIONAL.get(type_, {})
    _check(line, f"The public part of {type_}", public, required, optional)
    if members["v"] != (2 if type_ in _OPENED else 1):
        raise ProofFault("form", line, f"{type_} has a schema that this verifier does not know.")
    if members["version"] != line:
        raise ProofFault("form", line, f"The leaf of version {line} is expected here.")
    if members["table"] != table:
        raise ProofFault("form", line, "This leaf belongs to another table.")
    if members["at"] < at:
        raise ProofFault("form", line, "The time is before that of the previous leaf.")
    if (type_ == "TableOpened") != (line == 1):
        raise ProofFault("form", line, "TableOpened must be the first event and no other.")
    if committed != _commits(type_, public) and type_ != "TableOpened":
        problem = "must not have" if committed else "lacks"
        raise ProofFault("form", line, f"This {type_} {problem} a commitment.")


def _public(type_: str, public: Public) -> Mapping[str, Fits]:
    """The members of the public part that an event of this type must have."""
    kind = public.get("kind") if type_ == "NoteAdded" else None
    text = _SERVER_NOTES.get(kind) if type(kind) is str else None
    return PUBLIC[type_] if text is None else {**PUBLIC[type_], "text": text}


def _commits(type_: str, public: Public) -> bool:
    if type_ == "CardMoved":
        return seat_of(public["to"]) is not None
    if type_ == "NoteAdded":
        return "text" not in public
    return type_ in ("CardsSwapped", "CardDrawn", "SeatTaken", "SeatVacated")


def _is_part(part: Any, required: Mapping[str, Fits], optional: Mapping[str, Fits]) -> bool:
    fits = {**required, **optional}
    return required.keys() <= part.keys() <= fits.keys() and all(
        fits[name](value) for name, value in part.items()
    )


def _check(
    line: int, what: str, members: Any, required: Mapping[str, Fits], optional: Mapping[str, Fits]
) -> None:
    if type(members) is not dict:
        raise ProofFault("form", line, f"{what} is not an object.")
    for name, fits in required.items():
        if name not in members:
            raise ProofFault("form", line, f"{what} lacks its member {name!r}.")
        if not fits(members[name]):
            raise ProofFault("form", line, f"{what} has an invalid {name!r}.")
    if len(members) == len(required):
        return
    for name, value in members.items():
        if name not in required:
            if name not in optional:
                raise ProofFault("form", line, f"{what} has an unknown member {name!r}.")
            if not optional[name](value):
                raise ProofFault("form", line, f"{what} has an invalid {name!r}.")
