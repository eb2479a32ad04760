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
    """The state of a table as bytes."""
    return _encode(
        _Table(
            version=table.version,
            at=table.at,
            origin=table.origin,
            key=table.key,
            rules=dict(table.rules.given),
            seats={
                seat: _Player(player.name, player.key, player.taken_at, player.bot)
                for seat, player in table.seats.items()
            },
            host_seat=table.host_seat,
            round=None if table.round is None else _round(table.round),
            round_versions=table.round_versions,
            closed=table.closed,
            moved=[(*earlier, *later) for earlier, later in table.moved.items()],
        )
    )


def decode_table(data: bytes) -> Table:
    """A new table with the state of `encode_table`; raises ValueError for any other bytes."""
    found = _decode(data)
    return Table(
        version=found.version,
        at=found.at,
        origin=found.origin,
        key=found.key,
        rules=Rules.read(found.rules),
        seats={
            seat: Player(player.name, player.key, player.taken_at, player.bot)
            for seat, player in found.seats.items()
        },
        host_seat=found.host_seat,
        round=None if found.round is None else _decoded_round(found.round),
        round_versions=found.round_versions,
        closed=found.closed,
        moved={SeatHolder(a, b): SeatHolder(c, d) for a, b, c, d in found.moved},
    )


def _round(round_: Round) -> _Round:
    return _Round(
        number=round_.number,
        opened=round_.opened,
        entropy=round_.entropy,
        commit_ms=round_.commit_ms,
        reveal_ms=round_.reveal_ms,
        commitment=round_.commitment,
        stacks=round_.stacks,
        k=round_.k,
        shuffle=None if round_.shuffle is None else _shuffle(round_.shuffle),
        early_digests=round_.early_digests,
        withheld=sorted(round_.withheld),
        faces=round_.faces,
        sealed=round_.sealed,
        drawable=round_.drawable,
        shown=sorted(round_.shown),
        known={seat: sorted(slots) for seat, slots in round_.known.items()},
        moves=_Moves(
            last=None if round_.moves.last is None else _moved(round_.moves.last),
            passed={seat: _moved(passed) for seat, passed in round_.moves.passed.items()},
        ),
    )


def _moved(moved: CardsMoved) -> _Moved:
    return _Moved(**{name: getattr(moved, name) for name in _Moved.__struct_fields__})


def _shuffle(running: Shuffle) -> _Shuffle:
    return _Shuffle(**{name: getattr(running, name) for name in _Shuffle.__struct_fields__})


def _decoded_round(found: _Round) -> Round:
    running = found.shuffle
    # Each face is the object in `opened`: a string of its own for each slot takes 50 bytes more.
    codes = {code: code for code in found.opened}
    return Round(
        number=found.number,
        opened=found.opened,
        entropy=found.entropy,
        commit_ms=found.commit_ms,
        reveal_ms=found.reveal_ms,
        commitment=found.commitment,
        stacks=found.stacks,
        k=found.k,
        shuffle=None
        if running is None
        else Shuffle(**{name: getattr(running, name) for name in _Shuffle.__struct_fields__}),
        early_digests=found.early_digests,
        withheld=set(found.withheld),
        faces=[None if face is None else codes.get(face, face) for face in found.faces],
        sealed=found.sealed,
        drawable=found.drawable,
        shown=set(found.shown),
        known={seat: set(slots) for seat, slots in found.known.items()},
        moves=Moves(
            last=None if found.moves.last is None else _decoded_moved(found.moves.last),
            passed={seat: _decoded_moved(passed) for seat, passed in found.moves.passed.items()},
        ),
    )


def _decoded_moved(found: _Moved) -> CardsMoved:
    members = {name: getattr(found, name) for name in _Moved.__struct_fields__}
    return CardsMoved(**members | {"cards": [CardFrom(*card) for card in found.cards]})


@cache
def fold_code() -> bytes:
    """8 bytes that differ where the code differs that decodes events and applies them."""
    digest = sha256()
    own = sys.modules[__name__]
    for module in (cards, events, moves, rules, shuffle, stacks, state, codec, own):
        digest.update(Path(module.__file__ or "").read_bytes())
    return digest.digest()[:CODE_BYTES]
