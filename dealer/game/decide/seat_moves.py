"""Moving a player to another seat: SeatLeft and SeatTaken in one append, after a note that says so.

A player moves only by an own command, since only their client can follow: one that does not know
the note would take SeatLeft for the end of its seat, and forget its token. A host or a service
therefore asks, by a note, and the player's client sends the command.
"""

from __future__ import annotations

from dealer.errors import BadRequest, NotHost, RoundOpen, SeatOccupied, ShuffleRunning
from dealer.game import events
from dealer.game.commands import MoveSeat
from dealer.game.decide.permission import is_host, require_permission, require_seat
from dealer.game.events import Event
from dealer.game.stacks import hand, pass_pile, pile
from dealer.game.state import SEAT_MOVE, SEAT_OFFER, Table

MOVES_MAX = 50
"""How often a player may move without leaving the table."""


def move_seat(command: MoveSeat, table: Table) -> list[Event]:
    """Move the actor, who has no cards, to a free seat; or ask another player to move.

    A host who moves stays host. Raises NotHost or NotEntitled by the rules, SeatOccupied,
    ShuffleRunning, RoundOpen if cards are before the player or random bytes were withheld in this
    round, and NotHost if the seat is another player's.
    """
    actor, to = command.actor, command.to
    seat = command.seat
    if seat is None or seat == actor.seat:
        seat = require_seat(table, actor)
        require_permission(table, actor, "move_seat")
        _require_free(table, to)
        _require_no_cards(table, seat)
        _require_few_moves(table, seat)
        return _moved(table, seat, to)
    if not (actor.service or is_host(table, actor)):
        raise NotHost("Only the host may ask another player to move.")
    if seat not in table.seats:
        raise BadRequest(f"Seat {seat} is not taken.")
    _require_free(table, to)
    return [events.NoteAdded(actor.seat or 0, SEAT_OFFER, f"{seat}-{to}")]


def _require_free(table: Table, to: int) -> None:
    if not 1 <= to <= table.rules.seats:
        raise BadRequest(f"This table has the seats 1 to {table.rules.seats}.")
    if to in table.seats:
        raise SeatOccupied(f"Seat {to} is taken; choose another one.")


def _require_no_cards(table: Table, seat: int) -> None:
    """Cards belong to the seat, and so do the bytes that it has committed to."""
    round_ = table.round
    if round_ is None:
        return
    if round_.shuffle is not None:
        raise ShuffleRunning("A shuffle is running; move when it has ended.")
    if any(round_.cards(stack) for stack in (hand(seat), pass_pile(seat), pile(f"won:{seat}"))):
        raise RoundOpen("You have cards on this seat; move when they are gone, or after the round.")
    if seat in round_.withheld:
        raise RoundOpen("You withheld random bytes in this round; move after it.")
    if seat in round_.moves.passed:
        raise RoundOpen("You have passed cards; move when they are delivered.")


def _require_few_moves(table: Table, seat: int) -> None:
    """The state keeps each holder that a player was, and every command searches them."""
    now = table.holder(seat)
    if sum(later == now for later in table.moved.values()) >= MOVES_MAX:
        raise BadRequest(
            f"You have moved {MOVES_MAX} times at this table; leave the seat and take another one."
        )


def _moved(table: Table, seat: int, to: int) -> list[Event]:
    player = table.seats[seat]
    moved: list[Event] = [
        events.NoteAdded(seat, SEAT_MOVE, f"{seat}-{to}"),
        events.SeatLeft(seat),
        events.SeatTaken(to, player.name, player.key, player.bot),
    ]
    if table.host_seat == seat:
        moved.append(events.HostTransferred(to))
    return moved
