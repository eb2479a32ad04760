"""What an agent is given: the table and its events as its seat sees them, as JSON values."""

from __future__ import annotations

from typing import Any

from dealer.bots import legal
from dealer.client import Happened, RemoteTable
from dealer.game import events
from dealer.game.events import Event
from dealer.game.stacks import hand
from dealer.proof import codec

Members = dict[str, Any]

OF_SHUFFLES = (
    events.CardsSwapped,
    events.EntropyClosed,
    events.EntropyCommitted,
    events.EntropyRevealed,
)
"""Events that are only for checking shuffles."""

_LONG: dict[type[Event], tuple[str, ...]] = {
    events.TableOpened: ("key", "origin"),
    events.RoundOpened: ("deck", "commitment"),
    events.DeckSealed: ("slots",),
    events.RoundClosed: ("secret",),
    events.SeatTaken: ("key",),
}
"""Members that a player does not need; the client has verified them."""


def table_view(table: RemoteTable) -> Members:
    """The table now: seats, the seat's hand, numbers of other hands' cards, piles, what I may do.

    Cards are codes, `??` where the seat may not see them, bottom first.
    """
    state, markers = table.state, table.markers
    view: Members = {
        "table": table.id,
        "version": table.version,
        "name": state.rules.given.get("name"),
        "rules": dict(state.rules.given),
        "my_seat": table.seat,
        "seats": [
            {"seat": seat, "name": player.name, "bot": player.bot}
            for seat, player in sorted(state.seats.items())
        ],
        "closed": table.closed,
        "round": table.round,
        "shuffling": table.shuffling,
        "deck_cards": table.deck_count,
        "my_hand": table.hand,
        "hands": {str(seat): table.stack(hand(seat)) for seat in table.seats if seat != table.seat},
        "piles": table.piles,
        "turn": markers.turn,
        "my_turn": is_turn(table),
        "scores": {str(seat): score for seat, score in markers.scores.items()},
        "i_may": legal.actions(table),
    }
    alarms = list(table.doubts)
    return view | ({"alarms": alarms} if alarms else {})


def is_turn(table: RemoteTable) -> bool:
    """Whether the table has a turn marker and it is at the agent's seat."""
    return table.seat is not None and table.markers.turn == table.seat and not table.closed


def event_view(happened: Happened) -> Members:
    """An event without members that a player does not need."""
    version, _, event = happened
    members = dict(codec.public(event))
    for name in _LONG.get(type(event), ("salt",)):
        members.pop(name, None)
    card = getattr(event, "card", None)
    if card is not None:
        members["card"] = card
    return {"version": version, "event": type(event).__name__} | members
