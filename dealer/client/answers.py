"""Answers to commands, compared with the verified events that the commands have made.

No signed head covers an answer, so a caller gets of it only what the table's events say, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dealer.client.requests import Members
from dealer.game import events
from dealer.game.cards import UNKNOWN
from dealer.game.events import CardDrawn, CardMoved, Event
from dealer.game.stacks import DECK
from dealer.game.state import Table

MADE: Mapping[str, tuple[type[events.EventType], tuple[str, ...]]] = {
    "round.open": (events.RoundOpened, ("round", "commitment")),
    "round.close": (events.RoundClosed, ("round", "secret")),
    "deck.shuffle": (events.ShuffleStarted, ("k",)),
    "pile.shuffle": (events.ShuffleStarted, ("k",)),
}
"""The event that a command makes, and its members that are in the answer."""

Faces = Mapping[tuple[int, int], str]


@dataclass
class Place:
    """What says how many cards a command moves: the taken seats, and the sizes of stacks."""

    seats: set[int]
    sizes: dict[str, int]

    @classmethod
    def of(cls, table: Table) -> Place:
        """The place as it is now."""
        stacks = {} if table.round is None else table.round.stacks
        return cls(set(table.seats), {name: len(cards) for name, cards in stacks.items()})

    def follow(self, made: Sequence[Event]) -> Place:
        """The place after further events."""
        for event in made:
            match event:
                case events.SeatTaken(seat=seat):
                    self.seats.add(seat)
                case events.SeatLeft(seat=seat) | events.SeatVacated(seat=seat):
                    self.seats.discard(seat)
                case events.RoundOpened():
                    self.sizes.clear()
                case CardDrawn(source=source) | CardMoved(source=source):
                    to = event.to if isinstance(event, CardMoved) else ""
                    self.sizes[source] = self.sizes.get(source, 0) - 1
                    self.sizes[to] = self.sizes.get(to, 0) + 1
        return self


def confirmed(
    made: Sequence[Event],
    method: str,
    params: Members,
    result: Members,
    *,
    before: Place,
    seats: Sequence[int | None],
    faces: Faces,
) -> Members | None:
    """The answer `result` as `made` shows it: the events from `before` to its version.

    `seats` are those that the player had meanwhile, `faces` the cards by (round, slot) that were
    opened to the player; other cards are `??`. None if the events say anything else, are not those
    of the command, or if `result` is no answer to it.
    """
    try:
        shown = _shown_by(made, method, params, len(result.get("slots", ())), before, seats, faces)
        if shown is None:
            return None
        others = {name: value for name, value in shown.items() if name != "cards"}
        cards = zip(shown.get("cards", ()), result.get("cards", ()), strict=True)
        false = any(seen not in (UNKNOWN, code) for seen, code in cards)
        return None if false or result | others != result else result | shown
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _shown_by(
    made: Sequence[Event],
    method: str,
    params: Members,
    cards: int,
    before: Place,
    seats: Sequence[int | None],
    faces: Faces,
) -> Members | None:
    match method:
        case "deck.deal":
            seated = params.get("seats") or before.follow(made).seats
            count = params.get("each", 1) * len(seated)
            count += sum(pile["count"] for pile in params.get("piles", ()))
            moved = [event for event in made if not isinstance(event, events.CardShown)][-count:]
            from_deck = all(getattr(event, "source", "") == DECK for event in moved)
            return {"dealt": count} if from_deck and len(moved) == count else None
        case "deck.draw" | "pile.draw":
            start = len(made) - cards
            drawn = [event for event in made[start:] if isinstance(event, CardDrawn)]
            source = DECK if method == "deck.draw" else stack_of(params["pile"])
            if params.get("all"):
                count = before.follow(made[:start]).sizes.get(source)
            else:
                count = len(params["cards"]) if "cards" in params else params.get("count", 1)
            own = all(event.seat in seats and event.source == source for event in drawn)
            codes = [faces.get((event.round, event.slot), UNKNOWN) for event in drawn]
            slots = [event.slot for event in drawn]
            return {"cards": codes, "slots": slots} if own and len(drawn) == count else None
        case _ if method in MADE:
            kind, members = MADE[method]
            event = next((event for event in reversed(made) if type(event) is kind), None)
            values = {name: getattr(event, name, None) for name in members}
            return {n: v.hex() if isinstance(v, bytes) else v for n, v in values.items()}
    return {}


def stack_of(pile: str) -> str:
    """The stack of a pile's name, with or without the prefix `pile:`."""
    return pile if pile.startswith("pile:") else f"pile:{pile}"
