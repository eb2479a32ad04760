"""Encoding of a table's state for savepoints: plain values in a fixed order, as MessagePack.

`encode_table` and `decode_table` are inverse up to sharing of objects. The order of dicts is kept,
since it is the order in which seats, stacks and digests are shown; sets are sorted. `FORMAT` counts
up with every change of this module, and `fold_code` identifies the code that makes a state of
events: a state of another format, or of other code, is not decoded.
"""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from dealer.game import cards, events, moves, rules, shuffle, stacks, state
from dealer.game.moves import CardFrom, CardsMoved, Moves
from dealer.game.rules import Rules
from dealer.game.state import Player, Round, SeatHolder, Shuffle, Table
from dealer.proof import codec

FORMAT = 3

CODE_BYTES = 8


class _Player(Struct, array_like=True, forbid_unknown_fields=True):
    name: str
    key: bytes | None
    taken_at: int
    bot: bool


class _Shuffle(Struct, array_like=True, forbid_unknown_fields=True):
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started_at: int
    digests: dict[int, bytes]
    before: tuple[int, ...]
    nonces: dict[int, bytes]
    closed_version: int
    closed_at: int
    swaps_hidden: bool


class _Moved(Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    at: int
    source: str
    to: str
    drawn: bool
    revealed: bool
    cards: list[tuple[int, int]]


class _Moves(Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    last: _Moved | None = None
    passed: dict[int, _Moved] = {}


class _Round(Struct, array_like=True, forbid_unknown_fields=True):
    number: int
    opened: tuple[str, ...]
    entropy: str
    commit_ms: int
    reveal_ms: int
    commitment: bytes
    stacks: dict[str, list[int]]
    k: int
    shuffle: _Shuffle | None
    early_digests: dict[int, bytes]
    withheld: list[int]
    faces: list[str | None]
    sealed: bytearray
    drawable: bytearray
    shown: list[int]
    known: dict[int, list[int]]
    moves: _Moves = _Moves()  # absent in states of earlier code: nothing can be taken back


class _Table(Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    at: int
    origin: str
    key: bytes
    rules: dict[str, Any]
    seats: dict[int, _Player]
    host_seat: int | None
    round: _Round | None
    round_versions: list[int]
    closed: bool
    moved: list[tuple[int, int, int, int]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Table).decode


def encode_table(table: Table) -> bytes:
    members = _members(_Table, table)
    members["rules"] = dict(table.rules.given)
    members["seats"] = {
        seat: _Player(**_members(_Player, player)) for seat, player in table.seats.items()
    }
    members["round"] = None if table.round is None else _round(table.round)
    members["moved"] = [(*earlier, *later) for earlier, later in table.moved.items()]
    return _encode(_Table(**members))


def decode_table(data: bytes) -> Table:
    """A new table with the state of `encode_table`; raises ValueError for any other bytes."""
    found = _decode(data)
    members = _members(_Table, found)
    members["rules"] = Rules.read(found.rules)
    members["seats"] = {
        seat: Player(**_members(_Player, player)) for seat, player in found.seats.items()
    }
    members["round"] = None if found.round is None else _decoded_round(found.round)
    members["moved"] = {SeatHolder(a, b): SeatHolder(c, d) for a, b, c, d in found.moved}
    return Table(**members)


def _members(encoded: type[Struct], one: object) -> dict[str, Any]:
    """The members of a state or of its encoded form, which have the same names."""
    return {name: getattr(one, name) for name in encoded.__struct_fields__}


def _round(round_: Round) -> _Round:
    members = _members(_Round, round_)
    if round_.shuffle is not None:
        members["shuffle"] = _Shuffle(**_members(_Shuffle, round_.shuffle))
    members["withheld"] = sorted(round_.withheld)
    members["shown"] = sorted(round_.shown)
    members["known"] = {seat: sorted(slots) for seat, slots in round_.known.items()}
    last, passed = round_.moves.last, round_.moves.passed
    members["moves"] = _Moves(
        last=None if last is None else _moved(last),
        passed={seat: _moved(cards) for seat, cards in passed.items()},
    )
    return _Round(**members)


def _moved(moved: CardsMoved) -> _Moved:
    return _Moved(**_members(_Moved, moved))


def _decoded_round(found: _Round) -> Round:
    members = _members(_Round, found)
    if found.shuffle is not None:
        members["shuffle"] = Shuffle(**_members(_Shuffle, found.shuffle))
    # Each face is the object in `opened`: a string of its own for each slot takes 50 bytes more.
    codes = {code: code for code in found.opened}
    members["faces"] = [None if face is None else codes.get(face, face) for face in found.faces]
    members["withheld"], members["shown"] = set(found.withheld), set(found.shown)
    members["known"] = {seat: set(slots) for seat, slots in found.known.items()}
    last, passed = found.moves.last, found.moves.passed
    members["moves"] = Moves(
        last=None if last is None else _decoded_moved(last),
        passed={seat: _decoded_moved(cards) for seat, cards in passed.items()},
    )
    return Round(**members)


def _decoded_moved(found: _Moved) -> CardsMoved:
    members = _members(_Moved, found)
    members["cards"] = [CardFrom(*card) for card in found.cards]
    return CardsMoved(**members)


@cache
def fold_code() -> bytes:
    """8 bytes that differ where the code differs that decodes events and applies them."""
    digest = sha256()
    own = sys.modules[__name__]
    for module in (cards, events, moves, rules, shuffle, stacks, state, codec, own):
        digest.update(Path(module.__file__ or "").read_bytes())
    return digest.digest()[:CODE_BYTES]
