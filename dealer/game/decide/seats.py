"""Commands that open a table, and those about its seats; also notes."""

from __future__ import annotations

import re

from dealer.errors import (
    BadRequest,
    NameTaken,
    SeatOccupied,
    TableFull,
    VersionConflict,
)
from dealer.game import events
from dealer.game.commands import AddNote, LeaveSeat, OpenTable, TakeSeat
from dealer.game.decide.hosts import next_host
from dealer.game.decide.permission import require_permission, require_seat
from dealer.game.decide.shuffles import close_if_complete
from dealer.game.events import Event
from dealer.game.names import check_name, check_text, look_alike
from dealer.game.rules import Rules
from dealer.game.state import PROGRAM, SEAT_MOVE, SEAT_OFFER, TAKE_BACK, Table

NOTE_BYTES = 2048

_OF_SERVER = {
    TAKE_BACK: "hand.take_back",
    SEAT_MOVE: "seat.move",
    SEAT_OFFER: "seat.move",
    PROGRAM: "round.open",
}
"""The kinds of notes that only the server writes, by which command."""

_NOTE_KIND = re.compile("[a-z0-9._-]{1,64}")


def open_table(command: OpenTable, table: Table) -> list[Event]:
    """Open the table, which must not exist yet."""
    if table.version:
        raise VersionConflict("This table exists already.")
    Rules.check(command.rules)
    return [events.TableOpened(command.origin, command.key, command.rules)]


def take_seat(command: TakeSeat, table: Table) -> list[Event]:
    """Take the seat, or the lowest free one; SeatOccupied or TableFull if there is none.

    NameTaken if a seated player has the name. Logs of earlier releases may have a name twice.
    """
    check_name(command.name)
    if command.key is not None and len(command.key) != 32:
        raise BadRequest("A player's key is an Ed25519 public key: 32 bytes, as 64 hex digits.")
    seats = table.rules.seats
    seat = command.seat
    if seat is None:
        seat = next((free for free in range(1, seats + 1) if free not in table.seats), None)
        if seat is None:
            every = (
                f"All {seats} seats of this table are"
                if seats > 1
                else "The one seat of this table is"
            )
            raise TableFull(f"{every} taken; you may spectate instead.")
    elif not 1 <= seat <= seats:
        raise BadRequest(f"This table has the seats 1 to {seats}.")
    elif seat in table.seats:
        raise SeatOccupied(
            f"Seat {seat} is taken; choose another seat, or name none to get the next free one."
        )
    if is_name_taken(table, command.name):
        raise NameTaken("A player at this table has this name; choose another one.")
    return [events.SeatTaken(seat, command.name, command.key, command.bot)]


def is_name_taken(table: Table, name: str) -> bool:
    """Whether a seated player has this name, or one that looks the same."""
    return any(look_alike(player.name, name) for player in table.seats.values())


def leave_seat(command: LeaveSeat, table: Table) -> list[Event]:
    """Leave the seat that the actor holds; if the actor is host, another player follows."""
    actor = command.actor
    seat = require_seat(table, actor)
    follows = next_host(table, actor, seat, command.absence)
    return [events.SeatLeft(seat), *follows, *close_if_complete(table, left=seat)]


def add_note(command: AddNote, table: Table) -> list[Event]:
    """Add a text of the actor's seat, or of the host or a service, which have none."""
    actor = command.actor
    require_permission(table, actor, "annotate")
    if not _NOTE_KIND.fullmatch(command.kind):
        raise BadRequest(
            "The kind of a note has 1 to 64 characters: a-z, 0-9, full stop, hyphen, underscore."
        )
    if command.kind in _OF_SERVER:
        by = _OF_SERVER[command.kind]
        raise BadRequest(f"The server writes the notes of this kind, by {by}.")
    check_text(command.text, NOTE_BYTES, of="A note")
    return [events.NoteAdded(actor.seat or 0, command.kind, command.text)]
