"""What an agent is given: the table and its events as its seat sees them, as JSON values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dealer.bots import legal
from dealer.client import Happened, RemoteTable
from dealer.game.events import (
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    Event,
    RoundClosed,
    RoundOpened,
    SeatTaken,
    TableOpened,
)
from dealer.game.stacks import hand
from dealer.proof import codec

Members = dict[str, Any]

OF_SHUFFLES = (CardsSwapped, EntropyClosed, EntropyCommitted, EntropyRevealed)
"""Events that are only for checking shuffles."""

_LONG: dict[type[Event], tuple[str, ...]] = {
    TableOpened: ("key", "origin"),
    RoundOpened: ("deck", "commitment"),
    DeckSealed: ("slots",),
    RoundClosed: ("secret",),
    SeatTaken: ("key",),
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


def event_views(happened: Iterable[Happened]) -> list[Members]:
    """Events in order, without members that a player does not need."""
    return [_event_view(event) for event in happened]


def _event_view(happened: Happened) -> Members:
    version, _, event = happened
    members = dict(codec.public(event))
    for name in _LONG.get(type(event), ("salt",)):
        members.pop(name, None)
    card = getattr(event, "card", None)
    if card is not None:
        members["card"] = card
    return {"version": version, "event": type(event).__name__} | members
