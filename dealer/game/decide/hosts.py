"""Commands of the host about players, and what other players may do when one is absent for long.

A host who leaves the seat is followed by the player who has been seated longest, of those who have
a connection, else of all; bots do not become host. If the one who opened the table has a connection
and no seat, that one is host again. At the tables of services, which act without a connection, no
command has an absence, and all this is left to the service.
"""

from __future__ import annotations

from dealer.errors import BadRequest, NotHost
from dealer.game import events
from dealer.game.absence import Absence, host_of, longest_seated, minutes
from dealer.game.commands import Actor, TransferHost, VacateSeat
from dealer.game.decide.permission import is_host
from dealer.game.decide.shuffles import close_if_complete
from dealer.game.events import Event
from dealer.game.names import check_text
from dealer.game.state import Table

REASON_BYTES = 256


def vacate_seat(command: VacateSeat, table: Table) -> list[Event]:
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
        raise NotHost(_only_host("remove a player", absence, free))
    vacated = events.SeatVacated(seat, by, reason)
    return [vacated, *next_host(table, actor, seat, absence), *close_if_complete(table, left=seat)]


def transfer_host(command: TransferHost, table: Table) -> list[Event]:
    """Make the player of a seat the host; players make themselves, if the host is long absent."""
    actor, absence = command.actor, command.absence
    if not (actor.service or is_host(table, actor)):
        oneself = actor.seat == command.seat and actor.seat in table.seats
        if absence is None or not oneself or not absence.is_long(host_of(table)):
            follow = "a player may become host when the host has been away for"
            raise NotHost(_only_host("make another player the host", absence, follow))
    return [events.HostTransferred(_taken(table, command.seat))]


def next_host(table: Table, actor: Actor, left: int, absence: Absence | None) -> list[Event]:
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
        raise BadRequest(f"Seat {seat} is not taken.")
    return seat
