"""Commands that open a table, and those about its seats, its host and its notes.

A host who leaves the seat is followed by the player who has been seated longest, of those who have
a connection, else of all; bots do not become host. If the one who opened the table has a connection
and no seat, that one is host again. At the tables of services, which act without a connection, no
command has an absence, and all this is left to the service.

A player moves to another seat by SeatLeft and SeatTaken in one append, after a note that says so,
and only by an own command, since only their client can follow: one that does not know the note
would take SeatLeft for the end of its seat, and forget its token. A host or a service therefore
asks, by a note, and the player's client sends the command.
"""

from __future__ import annotations

import re

from dealer import errors
from dealer.game import commands, events
from dealer.game.absence import Absence, host_of, longest_seated, minutes
from dealer.game.decide.permission import is_host, require_permission, require_seat
from dealer.game.decide.practice import begin
from dealer.game.decide.round_secrets import RoundSecrets
from dealer.game.decide.rounds import close_if_complete
from dealer.game.events import PROGRAM, SEAT_MOVE, SEAT_OFFER, TAKE_BACK, Event
from dealer.game.names import check_name, check_text, look_alike
from dealer.game.rules import Rules
from dealer.game.stacks import hand, pass_pile, pile
from dealer.game.state import READMIT, Table

NOTE_BYTES = 2048

_OF_SERVER = {
    TAKE_BACK: "hand.take_back",
    SEAT_MOVE: "seat.move",
    SEAT_OFFER: "seat.move",
    PROGRAM: "round.open",
}
"""The kinds of notes that only the server writes, by which command."""

_NOTE_KIND = re.compile("[a-z0-9._-]{1,64}")


def open_table(command: commands.OpenTable, table: Table, house: RoundSecrets) -> list[Event]:
    """Open the table, which must not exist yet; a practice table up to its first shuffle."""
    if table.version:
        raise errors.VersionConflict("This table exists already.")
    Rules.check(command.rules)
    rules = dict(command.rules)
    name = rules.pop("name", None)  # what people write is not in the leaf
    opened = events.TableOpened(command.origin, command.key, rules, name)
    return [opened, *(begin(command.laid_out, house) if command.laid_out else ())]


def take_seat(command: commands.TakeSeat, table: Table) -> list[Event]:
    """Take the seat, or the lowest free one; SeatOccupied or TableFull if there is none.

    NameTaken if a seated player has the name, PlayerRemoved if one who had it was removed for a
    reason. Logs of earlier releases may have a name twice.
    """
    check_name(command.name)
    if command.key is not None and len(command.key) != 32:
        raise errors.BadRequest(
            "A player's key is an Ed25519 public key: 32 bytes, as 64 hex digits."
        )
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
            raise errors.TableFull(f"{every} taken; you may spectate instead.")
    elif not 1 <= seat <= seats:
        raise errors.BadRequest(f"This table has the seats 1 to {seats}.")
    elif seat in table.seats:
        raise errors.SeatOccupied(
            f"Seat {seat} is taken; choose another seat, or name none to get the next free one."
        )
    if is_name_taken(table, command.name):
        raise errors.NameTaken("A player at this table has this name; choose another one.")
    if is_removed(table, command.name):
        raise errors.PlayerRemoved(
            "A player of this name was removed from this table; the host can let them sit down "
            "again."
        )
    return [events.SeatTaken(seat, command.name, command.key, command.bot)]


def is_name_taken(table: Table, name: str) -> bool:
    """Whether a seated player has this name, or one that looks the same."""
    return any(look_alike(player.name, name) for player in table.seats.values())


def is_removed(table: Table, name: str) -> bool:
    """Whether a player of this name was removed for a reason and not readmitted."""
    return any(look_alike(removed, name) for removed in table.removed)


def leave_seat(command: commands.LeaveSeat, table: Table) -> list[Event]:
    """Leave the seat that the actor holds; if the actor is host, another player follows."""
    actor = command.actor
    seat = require_seat(table, actor)
    follows = next_host(table, actor, seat, command.absence)
    return [events.SeatLeft(seat), *follows, *close_if_complete(table, left=seat)]


def add_note(command: commands.AddNote, table: Table) -> list[Event]:
    """Add a text of the actor's seat, or of the host or a service, which have none."""
    actor = command.actor
    if command.kind != READMIT:
        require_permission(table, actor, "annotate")
    elif not (actor.service or is_host(table, actor)):
        raise errors.NotHost("Only the host may let a removed player sit down again.")
    if not _NOTE_KIND.fullmatch(command.kind):
        raise errors.BadRequest(
            "The kind of a note has 1 to 64 characters: a-z, 0-9, full stop, hyphen, underscore."
        )
    if command.kind in _OF_SERVER:
        by = _OF_SERVER[command.kind]
        raise errors.BadRequest(f"The server writes the notes of this kind, by {by}.")
    check_text(command.text, NOTE_BYTES, of="A note")
    if command.kind == READMIT and not is_removed(table, command.text):
        raise errors.BadRequest("No player of this name was removed from this table for a reason.")
    return [events.NoteAdded(actor.seat or 0, command.kind, command.text)]


MOVES_MAX = 50
"""How often a player may move without leaving the table."""


def move_seat(command: commands.MoveSeat, table: Table) -> list[Event]:
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
        raise errors.NotHost("Only the host may ask another player to move.")
    if seat not in table.seats:
        raise errors.BadRequest(f"Seat {seat} is not taken.")
    _require_free(table, to)
    return [events.NoteAdded(actor.seat or 0, SEAT_OFFER, f"{seat}-{to}")]


def _require_free(table: Table, to: int) -> None:
    if not 1 <= to <= table.rules.seats:
        raise errors.BadRequest(f"This table has the seats 1 to {table.rules.seats}.")
    if to in table.seats:
        raise errors.SeatOccupied(f"Seat {to} is taken; choose another one.")


def _require_no_cards(table: Table, seat: int) -> None:
    """Cards belong to the seat, and so do the bytes that it has committed to."""
    round_ = table.round
    if round_ is None:
        return
    if round_.shuffle is not None:
        raise errors.ShuffleRunning("A shuffle is running; move when it has ended.")
    if any(round_.cards(stack) for stack in (hand(seat), pass_pile(seat), pile(f"won:{seat}"))):
        raise errors.RoundOpen(
            "You have cards on this seat; move when they are gone, or after the round."
        )
    if seat in round_.withheld:
        raise errors.RoundOpen("You withheld random bytes in this round; move after it.")
    if seat in round_.moves.passed:
        raise errors.RoundOpen("You have passed cards; move when they are delivered.")


def _require_few_moves(table: Table, seat: int) -> None:
    """The state keeps each holder that a player was, and every command searches them."""
    now = table.holder(seat)
    if sum(later == now for later in table.moved.values()) >= MOVES_MAX:
        raise errors.BadRequest(
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


REASON_BYTES = 256


def vacate_seat(command: commands.VacateSeat, table: Table) -> list[Event]:
    """Remove the player of a seat; players may do it when that player has been absent for long."""
    actor, absence, reason = command.actor, command.absence, command.reason
    check_text(reason, REASON_BYTES, of="A reason")
    holder = table.holder(command.seat)
    if actor.service or is_host(table, actor):
        seat, by = _taken(table, command.seat), "service" if actor.service else "host"
    elif absence is not None and actor.seat in table.seats and holder and absence.is_long(holder):
        # Verifiers know only `host` and `service`, and the host did not do it. The reason is the
        # server's, so that the player who frees the seat writes no text in its name.
        seat, by = holder.seat, "service"
        reason = f"away for {minutes(absence.seconds[holder])}"
    else:
        free = "other players may free the seat of one who has been away for"
        raise errors.NotHost(_only_host("remove a player", absence, free))
    vacated = events.SeatVacated(seat, by, reason)
    return [vacated, *next_host(table, actor, seat, absence), *close_if_complete(table, left=seat)]


def transfer_host(command: commands.TransferHost, table: Table) -> list[Event]:
    """Make the player of a seat the host; players make themselves, if the host is long absent."""
    actor, absence = command.actor, command.absence
    if not (actor.service or is_host(table, actor)):
        oneself = actor.seat == command.seat and actor.seat in table.seats
        if absence is None or not oneself or not absence.is_long(host_of(table)):
            follow = "a player may become host when the host has been away for"
            raise errors.NotHost(_only_host("make another player the host", absence, follow))
    return [events.HostTransferred(_taken(table, command.seat))]


def next_host(
    table: Table, actor: commands.Actor, left: int, absence: Absence | None
) -> list[Event]:
    """HostTransferred, if the player of the seat `left` was host and another one follows.

    `actor` is who leaves the seat, or removes its player.
    """
    of_seat = table.host_seat == left
    of_token = table.host_seat is None and actor.host and actor.seat == left
    if absence is None or absence.opener_is_here or not (of_seat or of_token):
        return []
    others = table.seats.keys() - {left}
    present = {seat for seat in others if table.holder(seat) not in absence.seconds}
    seat = longest_seated(table, present) or longest_seated(table, others)
    return [] if seat is None else [events.HostTransferred(seat)]


def _only_host(to: str, absence: Absence | None, otherwise: str) -> str:
    if absence is None or absence.long == float("inf"):
        return f"Only the host may {to}."
    return f"Only the host may {to}; {otherwise} {minutes(absence.long)}."


def _taken(table: Table, seat: int) -> int:
    if seat not in table.seats:
        raise errors.BadRequest(f"Seat {seat} is not taken.")
    return seat
