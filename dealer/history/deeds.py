"""What a poker player would call the deeds of a round: a deal, a burn, a show, a hand put away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dealer.errors import NoHistory
from dealer.game.cards import UNKNOWN
from dealer.game.events import CardDrawn, CardMoved, CardShown
from dealer.game.stacks import BURN, DECK, DISCARD, seat_of
from dealer.game.state import Table
from dealer.history.story import Moment

MUCK = "pile:muck"
PUT_AWAY = (BURN, DISCARD, MUCK)
"""Piles that are no board: a card that goes there from the deck is burned."""


class Dealt(NamedTuple):
    seat: int
    name: str
    card: str


class Burned(NamedTuple):
    card: str


class Turned(NamedTuple):
    """A card of the board."""

    card: str


class Thrown(NamedTuple):
    """Out of a hand, onto whatever pile or the deck."""

    seat: int
    card: str


class Shown(NamedTuple):
    """A card of a hand, also of one that was thrown away before."""

    seat: int
    card: str


Deed = Dealt | Burned | Turned | Thrown | Shown


def deeds_of(moments: Iterable[Moment]) -> Iterator[Deed]:
    """The deeds of one closed round, from all of its moments.

    Raises NoHistory at a move that poker does not have: between hands, or into one from a pile.
    """
    holders: dict[int, int] = {}  # slot → the seat whose hand it came to
    for moment in moments:
        table, event = moment.table, moment.event
        match event:
            case CardDrawn(_, seat, source, slot, _):
                holders[slot] = seat
                yield _dealt(table, source=source, seat=seat, slot=slot)
            case CardMoved(_, slot, source, to, _, _):
                taker, giver = seat_of(to), seat_of(source)
                if taker is not None and taker != giver:
                    holders[slot] = taker
                    yield _dealt(table, source=source, seat=taker, slot=slot)
                elif taker is None and giver is not None:
                    yield Thrown(giver, _face(table, slot))
                elif source == DECK and to in PUT_AWAY:
                    yield Burned(_face(table, slot))
            case CardShown(_, slot, card, _):
                if slot in holders:
                    yield Shown(holders[slot], card)
                elif _stack_of(table, slot) not in (DECK, *PUT_AWAY):
                    yield Turned(card)
            case _:
                pass


def _dealt(table: Table, *, source: str, seat: int, slot: int) -> Dealt:
    if source != DECK:
        where = "from another hand" if seat_of(source) is not None else "from a pile"
        raise NoHistory(
            f"In round {_number(table)} seat {seat} took a card {where}, which no poker game of "
            "this format has; the plain text history tells it."
        )
    player = table.seats.get(seat)
    return Dealt(seat, "" if player is None else player.name, _face(table, slot))


def _number(table: Table) -> int:
    return 0 if table.round is None else table.round.number


def _face(table: Table, slot: int) -> str:
    return UNKNOWN if table.round is None else table.round.face(slot) or UNKNOWN


def _stack_of(table: Table, slot: int) -> str | None:
    return None if table.round is None else table.round.stack_of(slot)


class Course:
    """How the hand went, for who knows its end.

    By seat, `dealt` is the place of its last card among the deeds, `gone` that of the card whose
    throwing left the hand empty for good; `showdown` is the place of the first show after the last
    card, or behind all deeds.
    """

    def __init__(self, deeds: Sequence[Deed]) -> None:
        held: Counter[int] = Counter()
        self.dealt: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.showdown = len(deeds)
        for place, deed in enumerate(deeds):
            match deed:
                case Dealt(seat):
                    held[seat] += 1
                    self.dealt[seat] = place
                    self.gone.pop(seat, None)
                    self.showdown = len(deeds)
                case Turned():
                    self.showdown = len(deeds)
                case Thrown(seat):
                    held[seat] -= 1
                    if not held[seat]:
                        self.gone[seat] = place
                case Shown() if self.showdown == len(deeds):
                    self.showdown = place
                case _:
                    pass
