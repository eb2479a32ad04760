"""Estimate of the memory that the state of a table takes.

The constants are sizes in bytes of CPython 3.11 objects on a 64-bit machine; a test compares the
sum with the growth of a process. The running time depends on the number of stacks and seats, not of
cards, so that the size can be estimated after every commit.
"""

from __future__ import annotations

from dealer.game.state import Round, Table

TABLE = 1_200
"""A table without seats or round: the object, its key, origin and empty containers."""

SEAT = 300
OPENING = 40
REMOVED = 200
"""The name of a removed player, as an element of a set."""

ROUND = 1_600
CARD = 85
"""A card: its code, its entry in the opening deck and its integer on a stack."""

SLOT = 44
"""A slot: reference to its face, commitment of 32 bytes, drawable flag."""

STACK = 260
KNOWN = 48
"""A slot as an element of a set."""

ENTROPY = 160
"""A digest or nonce in a dict by seat."""

MOVED = 120
"""A card of a move that can be taken back: its tuple and integers."""


def size_of(table: Table) -> int:
    """Estimated size of `table` in bytes, including everything that players can add to it."""
    size = TABLE + SEAT * len(table.seats) + OPENING * len(table.round_versions) + table.rules.size
    size += REMOVED * len(table.removed)
    return size if table.round is None else size + _size_of_round(table.round)


def _size_of_round(round_: Round) -> int:
    size = ROUND + CARD * len(round_.opened) + SLOT * len(round_.faces)
    size += STACK * len(round_.stacks) + ENTROPY * len(round_.early_digests)
    size += KNOWN * (len(round_.shown) + len(round_.withheld))
    for slots in round_.known.values():
        size += STACK + KNOWN * len(slots)
    last, passed = round_.moves.last, round_.moves.passed
    for moved in [*passed.values(), *([] if last is None else [last])]:
        size += STACK + MOVED * len(moved.cards)
    shuffle = round_.shuffle
    if shuffle is not None:
        size += ROUND + 8 * len(shuffle.before)
        size += ENTROPY * (len(shuffle.digests) + len(shuffle.nonces))
    return size
