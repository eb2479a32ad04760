"""The game once more, event by event, each under the check of its type.

The first event that cannot have happened ends it. What is counted is counted up to there. In a
round that is not closed S is unknown: what only S can tell is left open, all else is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dealer.errors import ProofFault
from dealer.proof.verify import moves, shuffles
from dealer.proof.verify.books import Books, Wrong
from dealer.proof.verify.form import Leaf, Progress

Believe = Callable[[Books, Leaf], None]

EVENTS: Mapping[str, tuple[str, Believe]] = {
    "TableOpened": ("moves", moves.table_opened),
    "SeatTaken": ("moves", moves.seat_taken),
    "SeatLeft": ("moves", moves.seat_left),
    "RoundOpened": ("secrets", moves.round_opened),
    "ShuffleStarted": ("tape", shuffles.started),
    "EntropyCommitted": ("secrets", shuffles.committed),
    "EntropyClosed": ("secrets", shuffles.closed),
    "EntropyRevealed": ("secrets", shuffles.revealed),
    "ShuffleVoided": ("secrets", shuffles.voided),
    "CardsSwapped": ("tape", shuffles.swapped),
    "DeckSealed": ("seals", shuffles.sealed),
    "CardDrawn": ("moves", moves.drawn),
    "CardMoved": ("moves", moves.moved),
    "CardShown": ("seals", moves.shown),
    "CardPeeked": ("moves", moves.peeked),
    "StackCut": ("moves", moves.cut),
    "RoundClosed": ("secrets", moves.round_closed),
    "TableClosed": ("moves", moves.table_closed),
}
"""Type → the check that it falls under, and what lets it happen or raises Wrong."""


def replay(leaves: list[Leaf], books: Books, progress: Progress) -> None:
    """Raise the ProofFault of the first event that cannot have happened."""
    for leaf in leaves:
        check, believe = EVENTS[leaf.type]
        try:
            if books.closed:
                raise Wrong("The table was closed.")
            believe(books, leaf)
        except Wrong as wrong:
            raise ProofFault(check, leaf.version, str(wrong)) from wrong
        progress(leaf.version)
    books.remarks.open_rounds = int(books.round is not None)
