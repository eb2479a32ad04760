"""Checks of the rules, of the actor and of the round that several commands share."""

from __future__ import annotations

from dealer import errors
from dealer.game.commands import Actor
from dealer.game.state import Round, SeatHolder, Table


def is_host(table: Table, actor: Actor) -> bool:
    """Whether the actor is the host.

    That is the player whom the last host chose, while that player stays; otherwise the sender with
    the host token.
    """
    if table.host_seat is not None:
        return actor.seat == table.host_seat
    return actor.host


def is_permitted(table: Table, actor: Actor, action: str) -> bool:
    """Whether the table's rules allow `action` to this actor.

    A service may do what the host may.
    """
    who = table.rules.who[action]
    if who != "nobody" and (actor.service or is_host(table, actor)):
        return True
    return who == "players" and actor.seat in table.seats


def require_permission(table: Table, actor: Actor, action: str) -> None:
    """Raise NotHost or NotEntitled unless the table's rules allow `action` to this actor."""
    if is_permitted(table, actor, action):
        return
    who = table.rules.who[action]
    if who == "host":
        raise errors.NotHost(f"This table's rules allow only the host to {action}.")
    if who == "nobody":
        raise errors.NotEntitled(f"This table's rules do not allow anyone to {action}.")
    raise errors.NotEntitled(f"To {action}, take a seat at this table first.")


def require_current_seat(table: Table, actor: Actor) -> None:
    """Raise NotYourSeat if the actor left the seat, even if another player has taken it since.

    Raises VersionConflict if the actor has moved, by a command that was decided before this one.
    """
    if actor.seat is None or actor.taken_at is None:
        return
    player = table.seats.get(actor.seat)
    if player is None or player.taken_at != actor.taken_at:
        if SeatHolder(actor.seat, actor.taken_at) in table.moved:
            raise errors.VersionConflict("You moved to another seat meanwhile; send this again.")
        raise errors.NotYourSeat("You left this seat; join the table again.")


def require_seat(table: Table, actor: Actor) -> int:
    """The actor's seat; raises NotYourSeat if the actor has none at this table."""
    if actor.seat is None or actor.seat not in table.seats:
        raise errors.NotYourSeat("You have no seat at this table; join it first.")
    return actor.seat


def open_round(table: Table) -> Round:
    """The open round; raises NoRound between rounds."""
    if table.round is None:
        raise errors.NoRound("No round is open at this table; the host opens one with round.open.")
    return table.round


def idle_round(table: Table) -> Round:
    """The open round; raises ShuffleRunning during a shuffle, when no card may move or be shown."""
    round_ = table.round or open_round(table)
    if round_.shuffle is not None:
        raise errors.ShuffleRunning(
            "A shuffle is running; wait for its DeckSealed event and try again."
        )
    return round_
