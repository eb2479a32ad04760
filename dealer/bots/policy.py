"""The policy of the simple bots: a legal move at random, and the turn marker where one is used."""

from __future__ import annotations

import random

from dealer.bots import legal
from dealer.client import RemoteTable
from dealer.game.stacks import hand

HAND_FULL = 7
"""Cards of a hand from which a bot no longer draws."""

PASS_TURN = "turn"


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
    allowed = legal.actions(table)
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
    following = legal.next_seat(table)
    if table.seat is None or table.markers.turn != table.seat or following is None:
        return
    if legal.permits(table, "annotate"):
        await table.note(kind="turn", text=str(following))
