"""What an agent is given, as JSON values: the table and its events as its seat sees them, and what
it can prove about the table by its own verification of the whole log.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from dealer.bots.links import page_address
from dealer.bots.policy import actions
from dealer.client import RemoteTable, TableEvent
from dealer.errors import HouseUnreachable
from dealer.game import events
from dealer.game.events import Event
from dealer.game.stacks import hand
from dealer.proof import bundle, codec
from dealer.proof.verify import verify
from dealer.urls import opener

Members = dict[str, Any]

FETCH_SECONDS = 60.0

LONGEST = 256 * 1024 * 1024
"""Bytes of a bundle that are read; a longer one does not verify."""

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

    Cards are codes, `??` if the seat may not see them, bottom first.
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
        "i_may": actions(table),
    }
    alarms = list(table.doubts)
    return view | ({"alarms": alarms} if alarms else {})


def is_turn(table: RemoteTable) -> bool:
    """Whether the table has a turn marker and it is at the agent's seat."""
    return table.seat is not None and table.markers.turn == table.seat and not table.closed


def event_view(seen: TableEvent) -> Members:
    """An event without members that a player does not need."""
    version, _, event = seen
    members = dict(codec.public(event))
    for name in _LONG.get(type(event), ("salt",)):
        members.pop(name, None)
    card = getattr(event, "card", None)
    if card is not None:
        members["card"] = card
    return {"version": version, "event": type(event).__name__} | members


async def evidence_of(table: RemoteTable, server: str) -> dict[str, Any]:
    """The verification of the table's bundle.

    It is under the table's key that the client has pinned and the signed heads that it stored.

    `verified` is whether no check failed; `report` has a line for each check. `bundle` and `audit`
    are addresses at which others check it. `fraud` is evidence against the house, if there is any.
    """
    pages = page_address(server)
    path = (await table.bundle())["url"]
    if not path.startswith("/"):  # it might name another host
        raise HouseUnreachable("The server gave no path for the bundle.")
    address = f"{pages}{path}"
    lines = bundle.read(await asyncio.to_thread(_fetch, address, table.token))
    report = await asyncio.to_thread(lambda: verify(lines, key=table.key, saved=table.checkpoints))
    found = {
        "verified": report.ok,
        "report": report.lines(),
        "bundle": address,
        "audit": f"{pages}/tables/{table.id}/audit",
        "open_round": table.round,
    }
    return found if table.evidence is None else found | {"fraud": table.evidence.to_json()}


def _fetch(address: str, token: str | None) -> bytes:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        request = Request(address, headers=headers)
        with opener(redirects=False).open(request, timeout=FETCH_SECONDS) as answer:
            body: bytes = answer.read(LONGEST)
            return body
    except (OSError, URLError) as error:
        raise HouseUnreachable(f"The bundle at {address} could not be read: {error}") from error
