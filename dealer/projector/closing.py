"""What a round tells once its secret is out: every swap with both its cards, and every face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardsSwapped,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    SeatLeft,
    SeatTaken,
)
from dealer.game.state import Round, Table, evolve
from dealer.projector.changes import Cards, Changes
from dealer.projector.happened import Number

# Who sat there and who brought entropy moves no card.
_APART = (SeatTaken, SeatLeft, EntropyCommitted, EntropyRevealed)


def close_round(
    stream: Number,
    told: Round,
    before: Mapping[str, Cards],
    opened: Sequence[tuple[int, Event]],
    changes: Changes,
) -> None:
    """Adds to `changes` what the whole round tells beyond `told`, its state for the public.

    `before` has the rows of its stacks as they stand, `opened` its events from RoundOpened on,
    each with its version and hidden part.
    """
    table = Table()
    for version, event in opened:
        match event:
            case CardsSwapped(number, k, step, i, j):
                i_card, j_card = _faces(table, i, j)
                row = (stream, number, k, step, version, i, j, i_card, j_card)
                changes.add("swaps", row)
            case CardDrawn() | CardMoved() if event.slot not in told.shown:
                card = _round(table).faces[event.slot]
                changes.touch("face opened", (card, stream, version))
            case CardDrawn() | CardMoved():
                pass
            case _ if isinstance(event, _APART):
                continue
        evolve(table, event, 0)
    whole = _round(table)
    for stack, cards in whole.stacks.items():
        if cards != told.cards(stack):
            raise ValueError(f"the round's {stack} is not the one that the public saw")
        changes.lay(
            (stream, told.number, stack),
            before=before.get(stack, []),
            after=cards,
            opened=whole.opened,
            faces=whole.faces,
            turned=range(len(whole.faces)),
        )


def _round(table: Table) -> Round:
    if table.round is None:
        raise ValueError("a round's events begin with RoundOpened")
    return table.round


def _faces(table: Table, i: int, j: int | None) -> tuple[str, str]:
    round_ = _round(table)
    if round_.shuffle is None or j is None:
        raise ValueError("a swap needs a shuffle that runs, and both its places")
    cards = round_.cards(round_.shuffle.stack)
    i_card, j_card = round_.face(cards[i]), round_.face(cards[j])
    if i_card is None or j_card is None:
        raise ValueError("a card that is swapped has a face once its round is over")
    return i_card, j_card
