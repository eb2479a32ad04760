"""Whether a wish is granted, and what happens then.

`decide(command, table, house)` gives the events that follow from a command, or raises a Refused
whose sentence says why not. It changes nothing; `evolve` lets the events be true.
"""

from __future__ import annotations

from typing import assert_never

from dealer.errors import TableEnded, UnknownTable
from dealer.game.commands import (
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    FinishShuffle,
    LeaveSeat,
    Move,
    OpenRound,
    OpenTable,
    PassTime,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.game.decide import cards, rounds, seats, shuffles
from dealer.game.decide.house import House, NoSecret
from dealer.game.decide.permission import check_seat
from dealer.game.events import Event
from dealer.game.state import Table

__all__ = ["House", "NoSecret", "decide"]


def decide(command: Command, table: Table, house: House) -> list[Event]:
    """The events that `command` brings about at `table`; `house` knows the round's secret."""
    if isinstance(command, OpenTable):
        return seats.open_table(command, table)
    if table.version == 0:
        raise UnknownTable("There is no such table here; check its id, or open a new one.")
    if table.closed:
        raise TableEnded("This table is closed for good; open another one.")
    if not isinstance(command, TakeSeat | PassTime | FinishShuffle):
        check_seat(table, command.actor)
    match command:
        case Draw():
            return cards.draw(command, table)
        case Move():
            return cards.move(command, table, house)
        case Show():
            return cards.show(command, table, house)
        case Deal():
            return cards.deal(command, table)
        case Cut():
            return cards.cut(command, table)
        case StartShuffle():
            return shuffles.start(command, table)
        case DrawAtRandom():
            return shuffles.start_for_draw(command, table)
        case CommitEntropy():
            return shuffles.commit(command, table)
        case RevealEntropy():
            return shuffles.reveal(command, table, house)
        case PassTime():
            return shuffles.pass_time(command, table)
        case FinishShuffle():
            return shuffles.finish(command, table, house)
        case OpenRound():
            return rounds.open_round(command, table, house)
        case CloseRound():
            return rounds.close_round(command, table, house)
        case CloseTable():
            return rounds.close_table(command, table, house)
        case TakeSeat():
            return seats.take_seat(command, table)
        case LeaveSeat():
            return seats.leave_seat(command, table)
        case _:
            assert_never(command)
