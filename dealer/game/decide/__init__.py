"""`decide`: the events that follow from a command, or a Refused error with the reason.

It is a pure function of the command, the table's state and the round's secret; `evolve` applies the
events.
"""

from __future__ import annotations

from typing import assert_never

from dealer.errors import TableIsClosed, UnknownTable
from dealer.game import commands
from dealer.game.commands import Command
from dealer.game.decide import card_moves, rounds, seats
from dealer.game.decide.permission import require_current_seat
from dealer.game.decide.round_secrets import NoRoundSecrets, RoundSecrets
from dealer.game.events import Event
from dealer.game.state import Table

__all__ = ["NoRoundSecrets", "RoundSecrets", "decide"]

_WITHOUT_ACTOR = (
    commands.TakeSeat,
    commands.CheckDeadlines,
    commands.CloseEntropy,
    commands.FinishShuffle,
)


def decide(command: Command, table: Table, house: RoundSecrets) -> list[Event]:
    """The events that `command` causes at `table`, possibly none.

    `house` holds the secret of the open round. Raises a Refused; the state is never changed.
    """
    if isinstance(command, commands.OpenTable):
        return seats.open_table(command, table, house)
    if table.version == 0:
        raise UnknownTable(
            "There is no such table on this server; check its id, or open a new table."
        )
    if table.closed:
        raise TableIsClosed("This table is closed and stays closed; open another one.")
    if not isinstance(command, _WITHOUT_ACTOR) and (since := command.actor.taken_at) is not None:
        player = table.seats.get(command.actor.seat or 0)
        if player is None or player.taken_at != since:
            require_current_seat(table, command.actor)
    match command:
        case commands.Draw():
            return card_moves.draw(command, table)
        case commands.Move():
            return card_moves.move(command, table, house)
        case commands.Show():
            return card_moves.show(command, table, house)
        case commands.Deal():
            return card_moves.deal(command, table, house)
        case commands.Cut():
            return card_moves.cut(command, table)
        case commands.Pass():
            return card_moves.pass_cards(command, table)
        case commands.TakeBack():
            return card_moves.take_back(command, table)
        case commands.StartShuffle():
            return rounds.start_shuffle(command, table)
        case commands.DrawAtRandom():
            return rounds.start_for_draw(command, table)
        case commands.CommitEntropy():
            return rounds.commit_entropy(command, table)
        case commands.RevealEntropy():
            return rounds.reveal_entropy(command, table, house)
        case commands.CheckDeadlines():
            return rounds.check_deadlines(command, table)
        case commands.CloseEntropy():
            return rounds.close_without_absent(command, table)
        case commands.FinishShuffle():
            return rounds.finish_shuffle(command, table, house)
        case commands.OpenRound():
            return rounds.open_next_round(command, table, house)
        case commands.CloseRound():
            return rounds.close_round(command, table, house)
        case commands.CloseTable():
            return rounds.close_table(command, table, house)
        case commands.TakeSeat():
            return seats.take_seat(command, table)
        case commands.LeaveSeat():
            return seats.leave_seat(command, table)
        case commands.AddNote():
            return seats.add_note(command, table)
        case commands.VacateSeat():
            return seats.vacate_seat(command, table)
        case commands.MoveSeat():
            return seats.move_seat(command, table)
        case commands.TransferHost():
            return seats.transfer_host(command, table)
        case _:
            assert_never(command)
