"""What a seat may do now: the most frequent actions that the table's rules and its state allow."""

from __future__ import annotations

from dealer.client import RemoteTable
from dealer.game.stacks import DECK, hand

HAND_ACTIONS = ("play", "discard", "give", "show", "return", "pass")
STACK_ACTIONS = ("draw", "burn", "cut")
HOST_ACTIONS = ("close", "shuffle", "deal")


def permits(table: RemoteTable, action: str) -> bool:
    """Whether the rules allow this action to the table's own seat."""
    who = table.state.rules.who[action]
    if table.seat is None or who == "nobody":
        return False
    return who == "players" or table.state.host_seat == table.seat


def can_draw(table: RemoteTable) -> bool:
    """Whether the top card of the deck can be drawn: a shuffle has sealed it."""
    round_ = table.state.round
    if round_ is None or round_.shuffle is not None or not permits(table, "draw"):
        return False
    return round_.all_shuffled(round_.cards(DECK)[-1:]) and bool(round_.cards(DECK))


def actions(table: RemoteTable) -> list[str]:
    """Names of the rules' actions that the seat may take now; empty for a spectator.

    `pile` draws or moves cards of piles. `turn`, `collect` and `take_back` are never among them.
    """
    state = table.state
    if table.seat is None or state.closed:
        return []
    notes = ["annotate"] if permits(table, "annotate") else []
    if state.round is None:
        return notes + (["open"] if permits(table, "open") else [])
    if state.round.shuffle is not None:
        return notes
    allowed = [action for action in HOST_ACTIONS if permits(table, action)]
    if can_draw(table):
        allowed += [action for action in STACK_ACTIONS if permits(table, action)]
    if any(table.piles.values()) and permits(table, "pile"):
        allowed.append("pile")
    if state.round.cards(hand(table.seat)):
        allowed += [action for action in HAND_ACTIONS if permits(table, action)]
    return notes + allowed


def next_seat(table: RemoteTable) -> int | None:
    """The taken seat after the table's own; None if no other seat is taken."""
    own = table.seat or 0
    others = [seat for seat in table.seats if seat != own]
    return min(others, key=lambda seat: (seat < own, seat), default=None)
