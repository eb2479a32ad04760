"""Commands that open a table, take a seat and leave one."""

from __future__ import annotations

from dealer.errors import BadRequest, SeatOccupied, TableFull, VersionConflict
from dealer.game import events
from dealer.game.commands import LeaveSeat, OpenTable, TakeSeat
from dealer.game.decide.permission import require_seat
from dealer.game.decide.shuffles import close_if_complete
from dealer.game.events import Event
from dealer.game.names import check_name
from dealer.game.rules import Rules
from dealer.game.state import Table


def open_table(command: OpenTable, table: Table) -> list[Event]:
    """Open the table, which must not exist yet."""
    if table.version:
        raise VersionConflict("This table exists already.")
    Rules.check(command.rules)
    return [events.TableOpened(command.origin, command.key, command.rules)]


def take_seat(command: TakeSeat, table: Table) -> list[Event]:
    """Take the seat, or the lowest free one; SeatOccupied or TableFull if there is none."""
    check_name(command.name)
    if command.key is not None and len(command.key) != 32:
        raise BadRequest("A player's key is an Ed25519 public key: 32 bytes, as 64 hex digits.")
    seats = table.rules.seats
    seat = command.seat
    if seat is None:
        seat = next((free for free in range(1, seats + 1) if free not in table.seats), None)
        if seat is None:
            raise TableFull(f"All {seats} seats of this table are taken; you may spectate instead.")
    elif not 1 <= seat <= seats:
        raise BadRequest(f"This table has the seats 1 to {seats}.")
    elif seat in table.seats:
        raise SeatOccupied(
            f"Seat {seat} is taken; choose another seat, or name none to get the next free one."
        )
    return [events.SeatTaken(seat, command.name, command.key)]


def leave_seat(command: LeaveSeat, table: Table) -> list[Event]:
    """Leave the seat that the actor holds."""
    seat = require_seat(table, command.actor)
    return [events.SeatLeft(seat), *close_if_complete(table, left=seat)]
