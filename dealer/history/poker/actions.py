"""Events of a round as poker actions: dealt, burned, board, discarded and shown cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dealer.errors import HistoryUnavailable
from dealer.game import events
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import BURN, DECK, DISCARD, seat_of
from dealer.game.state import Round, Table
from dealer.history.replay import ReplayStep

MUCK = "pile:muck"
DEAD_PILES = (BURN, DISCARD, MUCK)
"""Piles that are not the board; a card moved there from the deck is burned."""


class Dealt(NamedTuple):
    seat: int
    name: str
    card: str


class Burned(NamedTuple):
    card: str


class BoardCard(NamedTuple):
    """A card dealt to the board."""

    card: str


class Discarded(NamedTuple):
    """A card moved from a hand onto a pile or the deck."""

    seat: int
    card: str


class Shown(NamedTuple):
    """A shown card that is or was in a hand."""

    seat: int
    card: str


Action = Dealt | Burned | BoardCard | Discarded | Shown


def actions_of(steps: Iterable[ReplayStep]) -> Iterator[Action]:
    """The actions of one closed round, from all of its steps.

    Raises HistoryUnavailable for a move that poker does not have: between hands, or from a pile
    into a hand.
    """
    holders: dict[int, int] = {}  # slot → the seat whose hand it came to
    for step in steps:
        table, round_ = step.table, step.table.round
        if round_ is None:
            continue
        match step.event:
            case events.CardDrawn(seat=seat, source=source, slot=slot):
                holders[slot] = seat
                yield _dealt(table, round_, source=source, seat=seat, slot=slot)
            case events.CardMoved(slot=slot, source=source, to=to):
                taker, giver = seat_of(to), seat_of(source)
                if taker is not None and taker != giver:
                    holders[slot] = taker
                    yield _dealt(table, round_, source=source, seat=taker, slot=slot)
                elif taker is None and giver is not None:
                    yield Discarded(giver, round_.face(slot) or UNKNOWN)
                elif source == DECK and to in DEAD_PILES:
                    yield Burned(round_.face(slot) or UNKNOWN)
            case events.CardShown(slot=slot, card=card):
                if slot in holders:
                    yield Shown(holders[slot], card)
                elif round_.stack_of(slot) not in (DECK, *DEAD_PILES):
                    yield BoardCard(card)
            case _:
                pass


def _dealt(table: Table, round_: Round, *, source: str, seat: int, slot: int) -> Dealt:
    if source != DECK:
        where = "from another hand" if seat_of(source) is not None else "from a pile"
        raise HistoryUnavailable(
            f"In round {round_.number} seat {seat} took a card {where}, which no poker game of "
            "this format has; use the plain text history."
        )
    player = table.seats.get(seat)
    return Dealt(seat, "" if player is None else player.name, round_.face(slot) or UNKNOWN)


class HandTimeline:
    """When each hand got its last card and was given up, and when the showdown began.

    All are indices of actions: by seat, `dealt` is that of its last card and `gone` that of the
    discard that left the hand empty for the rest of the round; `showdown` is that of the first show
    after the last dealt card, or the number of actions.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        held: Counter[int] = Counter()
        self.dealt: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.showdown = len(actions)
        for place, action in enumerate(actions):
            match action:
                case Dealt(seat):
                    held[seat] += 1
                    self.dealt[seat] = place
                    self.gone.pop(seat, None)
                    self.showdown = len(actions)
                case BoardCard():
                    self.showdown = len(actions)
                case Discarded(seat):
                    held[seat] -= 1
                    if not held[seat]:
                        self.gone[seat] = place
                case Shown() if self.showdown == len(actions):
                    self.showdown = place
                case _:
                    pass
