"""Faults of the log, its writer, the projector and the feed."""

from __future__ import annotations

from typing import Any

from dealer.eventlog.rows import Append, Appended, Conflict
from dealer.eventlog.writer import Writer
from dealer.feed import pages
from dealer.feed.positions import Place
from dealer.projector import runner
from dealer.projector.stream_projector import StreamProjector
from dealer.service.tables.execution import CommandExecution, CommandResult
from tests.simulation.faults import Replacement, fault, fault_of


@fault_of(Writer, "submit")
def reply_before_commit(submit: Any, self: Writer, request: Any) -> None:
    """The caller is answered when its append is queued."""
    submit(self, request)
    if isinstance(request, CommandExecution):
        request.answer(CommandResult(request.end, request.events))


@fault_of(Writer, "submit")
def chain_goes_on_after_a_lost_append(submit: Any, self: Writer, request: Any) -> None:
    """What was decided on a lost append is written where its version fits."""
    request.chain = None
    submit(self, request)


@fault_of(Writer, "_append")
def conflict_taken_for_success(append: Any, self: Writer, batch: list[Append], **how: Any) -> Any:
    """A conflict is delivered as if the append had been written."""
    decided, results = append(self, batch, **how)
    return decided, [
        Appended(request.end) if isinstance(result, Conflict) else result
        for request, result in zip(decided, results, strict=True)
    ]


@fault_of(CommandExecution, "stamp")
def command_id_not_stored(stamp: Any, self: CommandExecution) -> None:
    """The id of a command is remembered, but not written with its events."""


@fault_of(Writer, "_take")
def batch_written_in_another_order(take: Any, self: Writer) -> Any:
    """The requests of a batch are taken from the wrong end of the queue."""
    return take(self)[::-1]


@fault
def projection_moves_without_comparing() -> list[Replacement]:
    """Two projectors both apply the same events."""
    statement = "UPDATE stream SET projected = ? WHERE id = ? AND ? >= 0"
    return [Replacement(runner, "_ADVANCE", lambda _: statement)]


@fault_of(runner, "_not_advanced")
def projection_and_its_mark_are_two_transactions(
    not_advanced: Any, connection: Any, advances: Any
) -> Any:
    """A process that dies between the read models and their mark writes the same events again."""
    where = "SELECT projected FROM stream WHERE id = ?"
    found = [
        connection.exec_driver_sql(where, (stream_id,)).scalar() for _, stream_id, _ in advances
    ]
    if found == [projected for _, _, projected in advances]:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("BEGIN")
    return not_advanced(connection, advances)


@fault_of(StreamProjector, "_take")
def projection_continues_a_state_of_another_version(
    take: Any, self: StreamProjector, connection: Any, number: int, version: int
) -> Any:
    """What another process has projected since is missing in the state in memory."""
    cached = self._cached.get(number)
    state = take(self, connection, number, version)
    if cached is None:
        return state
    cached.table.version = version
    return cached.table


@fault_of(pages, "_first")
def feed_page_skips_a_row(first: Any, rows: Any, place: Place, limit: int) -> Any:
    """The page after a full one begins one row too late."""
    found, following = first(rows, place, limit)
    return found, None if following is None else Place(following.seq + 1)
