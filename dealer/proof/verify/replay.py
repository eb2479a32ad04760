"""Replay of the events in order, each under the check of its type.

Before an event's own check comes that of its opening (secrets): it is there, or the table is closed
and the opened part withheld; it is what the leaf commits to, and has the members of its type.
The first violation ends the replay, and the counts end there too. In a round that is not closed S
is unknown: what depends on S is not checked, everything else is.

Before all events: a log whose TableOpened has the rule `insecure_test_deck`, with any value, is no
proof (tape, line 1). Clients apply its events one by one and warn of it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dealer.errors import ProofFault
from dealer.proof.verify import moves, shuffles
from dealer.proof.verify.form import Leaf, Progress
from dealer.proof.verify.ledger import Ledger, RuleViolation

Apply = Callable[[Ledger, Leaf], None]

INSECURE_RULE = "insecure_test_deck"
INSECURE = (
    "This table was opened at a server with insecure test decks, which may choose the cards: it "
    "proves nothing about them."
)

EVENTS: Mapping[str, tuple[str, Apply]] = {
    "TableOpened": ("moves", moves.table_opened),
    "SeatTaken": ("moves", moves.seat_taken),
    "SeatLeft": ("moves", moves.seat_left),
    "SeatVacated": ("moves", moves.seat_left),
    "HostTransferred": ("moves", moves.host_transferred),
    "NoteAdded": ("moves", moves.note_added),
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
"""Type of event → its check, and the function that applies it or raises RuleViolation."""


def apply(ledger: Ledger, leaf: Leaf) -> None:
    """Apply one event to the ledger; raises RuleViolation if it violates the rules."""
    if ledger.closed:
        raise RuleViolation("The table is closed.")
    _, apply_event = EVENTS[leaf.type]
    apply_event(ledger, leaf)


def replay(leaves: list[Leaf], ledger: Ledger, *steps: Progress) -> None:
    """Apply all events to the ledger, each followed by `steps`; raises the first ProofFault."""
    if INSECURE_RULE in leaves[0].public["rules"]:
        raise ProofFault("tape", leaves[0].version, INSECURE)
    for leaf in leaves:
        if leaf.fault:
            raise ProofFault("secrets", leaf.version, leaf.fault)
        try:
            apply(ledger, leaf)
        except RuleViolation as violation:
            check, _ = EVENTS[leaf.type]
            raise ProofFault(check, leaf.version, str(violation)) from violation
        for step in steps:
            step(leaf.version)
    ledger.remarks.open_rounds = int(ledger.round is not None)
