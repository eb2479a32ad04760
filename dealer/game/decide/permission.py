"""Who may do what: the rules of the table, and who is asking."""

from __future__ import annotations

from dealer.errors import NoRound, NotEntitled, NotHost, NotYourSeat, ShuffleRunning
from dealer.game.commands import Actor
from dealer.game.state import Round, Table


def permit(table: Table, actor: Actor, action: str) -> None:
    """Raise NotEntitled unless the table's rules let this actor do `action`."""
    who = table.rules.who[action]
    if who != "nobody" and actor.host:
        return
    if who == "players" and actor.seat in table.seats:
        return
    if who == "host":
        raise NotHost(f"At this table only the host may {action}.")
    if who == "nobody":
        raise NotEntitled(f"At this table nobody may {action}.")
    raise NotEntitled(f"To {action}, take a seat at this table first.")


def check_seat(table: Table, actor: Actor) -> None:
    """Raise NotYourSeat where the actor gave the seat up, also if another sits there by now."""
    if actor.since is None:
        return
    player = None if actor.seat is None else table.seats.get(actor.seat)
    if player is None or player.since != actor.since:
        raise NotYourSeat("You have given up this seat; join the table again.")


def seated(table: Table, actor: Actor) -> int:
    """The actor's seat; NotYourSeat without one."""
    if actor.seat is None or actor.seat not in table.seats:
        raise NotYourSeat("You sit at no seat of this table; join it first.")
    return actor.seat


def open_round(table: Table) -> Round:
    if table.round is None:
        raise NoRound("No round is open at this table; the host opens one with round.open.")
    return table.round


def still_round(table: Table) -> Round:
    """The open round, if no shuffle runs in it: until its seal no card moves or is shown."""
    round_ = open_round(table)
    if round_.shuffle is not None:
        raise ShuffleRunning("A shuffle is running; wait for DeckSealed and try again.")
    return round_
