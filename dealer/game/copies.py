"""Independent copies of a table's state: `evolve` changes a state in place, a copy stays."""

from __future__ import annotations

from dataclasses import replace

from dealer.game.moves import CardsMoved, Moves
from dealer.game.state import Round, Shuffle, Table


def copy_table(table: Table) -> Table:
    """A state that is equal to `table` and shares nothing with it that can change."""
    return replace(
        table,
        seats={seat: replace(player) for seat, player in table.seats.items()},
        round=None if table.round is None else _round(table.round),
        round_versions=list(table.round_versions),
        moved=dict(table.moved),
    )


def _round(round_: Round) -> Round:
    return replace(
        round_,
        stacks={name: list(cards) for name, cards in round_.stacks.items()},
        shuffle=None if round_.shuffle is None else _shuffle(round_.shuffle),
        early_digests=dict(round_.early_digests),
        withheld=set(round_.withheld),
        faces=list(round_.faces),
        sealed=bytearray(round_.sealed),
        drawable=bytearray(round_.drawable),
        shown=set(round_.shown),
        known={seat: set(slots) for seat, slots in round_.known.items()},
        moves=_moves(round_.moves),
    )


def _shuffle(shuffle: Shuffle) -> Shuffle:
    return replace(shuffle, digests=dict(shuffle.digests), nonces=dict(shuffle.nonces))


def _moves(moves: Moves) -> Moves:
    last = None if moves.last is None else _moved(moves.last)
    return Moves(last, {seat: _moved(passed) for seat, passed in moves.passed.items()})


def _moved(moved: CardsMoved) -> CardsMoved:
    return replace(moved, cards=list(moved.cards))
