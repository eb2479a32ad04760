"""What a seat may do now, by the table's rules and its state; and the policy of the simple bots: a
legal move at random, and the turn marker if one is used.
"""

from __future__ import annotations

import random

from dealer.client import RemoteTable
from dealer.game.stacks import DECK, hand

HAND_FULL = 7
"""Cards of a hand from which a bot no longer draws."""

PASS_TURN = "turn"

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


def possible_moves(table: RemoteTable) -> list[str]:
    """The kinds of moves to choose from: `play`, `discard`, `draw`, or `turn`, to pass the turn.

    Empty while the bot has to wait: between rounds, during a shuffle, and while the turn marker is
    at another seat that is taken.
    """
    turn = table.markers.turn
    if table.round is None or table.shuffling or table.seat is None:
        return []
    if turn is not None and turn != table.seat and turn in table.seats:
        return []
    allowed = actions(table)
    moves: list[str] = [move for move in ("play", "discard") if move in allowed]
    if "draw" in allowed and len(table.hand) < HAND_FULL:
        moves.append("draw")
    was_shuffled = table.state.round is not None and bool(table.state.round.faces)
    if not moves and was_shuffled and turn == table.seat and "annotate" in allowed:
        moves.append(PASS_TURN)
    return moves


async def make_move(table: RemoteTable, rng: random.Random) -> str | None:
    """Send one of `possible_moves`, and pass the turn on; the move, None if there is none.

    Raises Refused if the table has changed meanwhile.
    """
    moves, round_ = possible_moves(table), table.state.round
    if not moves or round_ is None or table.seat is None:
        return None
    move = rng.choice(moves)
    if move == "draw":
        await table.draw()
    elif move != PASS_TURN:
        card = rng.choice(round_.cards(hand(table.seat)))
        await (table.play(card) if move == "play" else table.discard(card))
    await _pass_turn(table)
    return move


async def _pass_turn(table: RemoteTable) -> None:
    following = next_seat(table)
    if table.seat is None or table.markers.turn != table.seat or following is None:
        return
    if permits(table, "annotate"):
        await table.note(kind="turn", text=str(following))
