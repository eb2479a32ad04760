"""Opening a table, sitting down and getting up."""

from __future__ import annotations

import re

from dealer.errors import BadRequest, Conflicted, SeatOccupied, TableFull
from dealer.game.commands import LeaveSeat, OpenTable, TakeSeat
from dealer.game.decide.permission import seated
from dealer.game.decide.shuffles import close_if_complete
from dealer.game.events import Event, SeatLeft, SeatTaken, TableOpened
from dealer.game.rules import NAME_MAX, Rules
from dealer.game.state import Table

_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def check_name(name: str) -> None:
    """Raise BadRequest unless `name` is 1–64 characters, none of them a control character."""
    if not 1 <= len(name) <= NAME_MAX or _CONTROL.search(name) or not name.strip():
        raise BadRequest(f"A name has 1 to {NAME_MAX} characters and no control characters.")


def open_table(command: OpenTable, table: Table) -> list[Event]:
    if table.version:
        raise Conflicted("This table is open already.")
    Rules.check(command.rules)
    return [TableOpened(command.origin, command.key, command.rules)]


def take_seat(command: TakeSeat, table: Table) -> list[Event]:
    check_name(command.name)
    if command.key is not None and len(command.key) != 32:
        raise BadRequest("A player's key is an Ed25519 public key: 32 bytes, as 64 hex digits.")
    seats = table.rules.seats
    seat = command.seat
    if seat is None:
        seat = next((free for free in range(1, seats + 1) if free not in table.seats), None)
        if seat is None:
            raise TableFull(f"All {seats} seats of this table are taken; you may watch instead.")
    elif not 1 <= seat <= seats:
        raise BadRequest(f"This table has the seats 1 to {seats}.")
    elif seat in table.seats:
        raise SeatOccupied(f"Seat {seat} is taken; choose another, or name none.")
    return [SeatTaken(seat, command.name, command.key)]


def leave_seat(command: LeaveSeat, table: Table) -> list[Event]:
    seat = seated(table, command.actor)
    return [SeatLeft(seat), *close_if_complete(table, left=seat)]
