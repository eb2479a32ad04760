"""Estimate of the memory that the state of a table takes.

The constants are bytes of CPython 3.11 objects on a 64-bit machine; a test holds the sum against
what a process really grows by. The cost is proportional to the number of stacks and seats, never to
the number of cards, so that an estimate can be made after every commit.
"""

from __future__ import annotations

from dealer.game.state import Round, Table

TABLE = 1_200
"""A table without seats or round: its record, key, origin and empty containers."""

SEAT = 400
OPENING = 40
ROUND = 1_600
CARD = 130
"""A card of a deck: its code, its place in the opening deck, and its number on a stack."""

SLOT = 44
"""A slot: pointer to its face, commitment of 32 bytes, and whether it can be drawn."""

STACK = 260
KNOWN = 48
"""A slot in a set of slots."""

ENTROPY = 160
"""A digest or nonce under its seat."""


def size_of(table: Table) -> int:
    """Bytes that `table` takes, estimated; grows with everything that a player can add to it."""
    size = TABLE + SEAT * len(table.seats) + OPENING * len(table.openings) + table.rules.size
    return size if table.round is None else size + _size_of_round(table.round)


def _size_of_round(round_: Round) -> int:
    size = ROUND + CARD * len(round_.opened) + SLOT * len(round_.faces)
    size += STACK * len(round_.stacks) + ENTROPY * len(round_.ahead)
    size += KNOWN * (len(round_.shown) + len(round_.withheld))
    for slots in round_.known.values():
        size += STACK + KNOWN * len(slots)
    shuffle = round_.shuffle
    if shuffle is not None:
        size += ROUND + 8 * len(shuffle.before)
        size += ENTROPY * (len(shuffle.digests) + len(shuffle.nonces))
    return size
