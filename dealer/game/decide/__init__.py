"""`decide`: the events that follow from a command, or a Refused error with the reason.

It is a pure function of the command, the table's state and the round's secret; `evolve` applies the
events.
"""

from __future__ import annotations

from typing import assert_never

from dealer.errors import TableIsClosed, UnknownTable
from dealer.game.commands import (
    AddNote,
    CheckDeadlines,
    CloseEntropy,
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
    MoveSeat,
    OpenRound,
    OpenTable,
    Pass,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeBack,
    TakeSeat,
    TransferHost,
    VacateSeat,
)
from dealer.game.decide import (
    cards,
    deals,
    hosts,
    passes,
    rounds,
    seat_moves,
    seats,
    shuffles,
    take_back,
)
from dealer.game.decide.permission import require_current_seat
from dealer.game.decide.round_secrets import NoRoundSecrets, RoundSecrets
from dealer.game.events import Event
from dealer.game.state import Table

__all__ = ["NoRoundSecrets", "RoundSecrets", "decide"]


def decide(command: Command, table: Table, house: RoundSecrets) -> list[Event]:
    """The events that `command` causes at `table`, possibly none.

    `house` holds the secret of the open round. Raises a Refused; the state is never changed.
    """
    if isinstance(command, OpenTable):
        return seats.open_table(command, table)
    if table.version == 0:
        raise UnknownTable(
            "There is no such table on this server; check its id, or open a new table."
        )
    if table.closed:
        raise TableIsClosed("This table is closed and stays closed; open another one.")
    if not isinstance(command, (TakeSeat, CheckDeadlines, CloseEntropy, FinishShuffle)):
        require_current_seat(table, command.actor)
    match command:
        case Draw():
            return cards.draw(command, table)
        case Move():
            return cards.move(command, table, house)
        case Show():
            return cards.show(command, table, house)
        case Deal():
            return deals.deal(command, table, house)
        case Cut():
            return cards.cut(command, table)
        case Pass():
            return passes.pass_cards(command, table)
        case TakeBack():
            return take_back.take_back(command, table)
        case StartShuffle():
            return shuffles.start(command, table)
        case DrawAtRandom():
            return shuffles.start_for_draw(command, table)
        case CommitEntropy():
            return shuffles.commit(command, table)
        case RevealEntropy():
            return shuffles.reveal(command, table, house)
        case CheckDeadlines():
            return shuffles.check_deadlines(command, table)
        case CloseEntropy():
            return shuffles.close_without_absent(command, table)
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
        case AddNote():
            return seats.add_note(command, table)
        case VacateSeat():
            return hosts.vacate_seat(command, table)
        case MoveSeat():
            return seat_moves.move_seat(command, table)
        case TransferHost():
            return hosts.transfer_host(command, table)
        case _:
            assert_never(command)
