"""Command processor: decides commands, appends their events to the log, publishes and answers.

A command is decided at once against the optimistic state in memory, and its events go to the log's
writer. When the batch with them has been committed, the table's subscribers are notified and then
the caller is answered, in the order of versions. If the log refuses the append because another
process was quicker, everything decided on that state is void: the table is reloaded and the
commands are decided again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from dealer.errors import (
    DealerError,
    Overloaded,
    Refused,
    VersionConflict,
)
from dealer.eventlog import Known, Log, Result
from dealer.service.background_tasks import BackgroundTasks
from dealer.service.deadlines import Deadlines
from dealer.service.duplicates import DuplicateCommands
from dealer.service.event_reader import EventReader
from dealer.service.execution import (
    ATTEMPTS,
    CommandExecution,
    CommandResult,
    StoredCommand,
    failed,
    internal,
    unavailable,
)
from dealer.service.executor import CommandExecutor
from dealer.service.live_table import LiveTable, TableState
from dealer.service.loading import Loader
from dealer.service.rejections import RejectionConfirmer
from dealer.service.reload import Reloader
from dealer.service.snapshots import CommitNotice, NoticeListener
from dealer.service.stored_savepoints import StoredSavepoints
from dealer.service.table_cache import EVENTS, LONG, TableCache


class CommandProcessor:
    """Takes requests for any table of one log.

    `notify` receives a notice of each commit; `on_foreign_events` is called with a table before
    events of other processes are published there.
    """

    def __init__(
        self,
        log: Log,
        loader: Loader,
        reader: EventReader,
        executor: CommandExecutor,
        cache: TableCache,
        tasks: BackgroundTasks,
        savepoints: StoredSavepoints,
        *,
        notify: NoticeListener,
        on_foreign_events: Callable[[LiveTable], None],
    ) -> None:
        self._log = log
        self._executor = executor
        self._cache = cache
        self._savepoints = savepoints
        self._notify = notify
        self._closed = False
        self.deadlines = Deadlines(executor, self.decide_again)
        self.reloader = Reloader(
            log,
            loader,
            cache,
            self.deadlines,
            tasks,
            notify=notify,
            on_foreign_events=on_foreign_events,
            retry=self._retry,
        )
        self._duplicates = DuplicateCommands(reader, self.reloader, tasks)
        self._rejections = RejectionConfirmer(
            log, reader, self.reloader, self._duplicates, tasks, submit=self.decide_again
        )

    def close(self) -> None:
        """Publish and answer nothing more."""
        self._closed = True

    def submit(self, live_table: LiveTable, execution: CommandExecution) -> None:
        """Decide a command now; its `done` is called once the events are on disk, or why not."""
        if live_table.why_unreadable is not None:
            execution.answer(unavailable(copy(live_table.why_unreadable)))
            return
        if live_table.state is TableState.RELOADING:
            live_table.pending_retries.append(execution)
            return
        if self._log.full():
            execution.answer(Overloaded("The server has too much to write; try again shortly."))
            return
        if execution.name is not None:
            stored = live_table.stored_commands.get(execution.name)
            if stored is not None:
                self._duplicates.answer(live_table, execution, stored)
                return
        try:
            changed = self._executor.apply(live_table, execution, self)
        except Refused as refusal:
            self._rejections.reject(live_table, execution, refusal)
            return
        except Exception as error:
            self._reload_after_internal_error(live_table, execution, error)
            return
        if not changed:
            nothing = CommandResult(live_table.table.version, [])
            self._rejections.reject(live_table, execution, nothing)
            return
        live_table.begin_append()
        try:
            self._log.submit(execution)
        except Exception as error:
            live_table.chain.broken = True
            self.lost(execution, failed("queueing an append failed", error))
            return
        round_ = live_table.table.round
        if live_table.timer is not None or (round_ is not None and round_.shuffle is not None):
            self.deadlines.arm(live_table)

    def _reload_after_internal_error(
        self, live_table: LiveTable, execution: CommandExecution, error: Exception
    ) -> None:
        """A bug interrupted a decision half-way: the state in memory is undefined, so reload it."""
        live_table.chain.broken = True
        live_table.begin_reload()
        execution.answer(internal("deciding a command failed", error))
        self.reloader.start_if_due(live_table)

    def answer_failed(self, execution: CommandExecution, error: Exception) -> None:
        """Answer a command that could not be submitted, unless it is answered already."""
        execution.origin = None  # if it was queued, its frames are not held back for the answer
        execution.answer(failed("submitting a command failed", error))

    def _retry(self, live_table: LiveTable, executions: Sequence[CommandExecution]) -> None:
        """Decide again what was void or waited for a reload."""
        for each in executions:
            self.decide_again(live_table, each)
        self.deadlines.arm(live_table)

    def decide_again(self, live_table: LiveTable, execution: CommandExecution) -> None:
        """`submit`, for one of many: what goes wrong is its own answer, and nothing is raised."""
        try:
            if execution.duplicate_of is not None:
                self._duplicates.answer(live_table, execution, execution.duplicate_of)
            elif execution.attempts >= ATTEMPTS:
                changed = "The table changed each time; read it and try again."
                execution.answer(VersionConflict(changed))
            else:
                self.submit(live_table, execution)
        except Exception as error:
            self.answer_failed(execution, error)

    # After a commit, on the loop

    def committed(self, execution: CommandExecution) -> None:
        """Publish first, then answer the caller, then the others that waited for it."""
        if self._closed:
            return
        live_table: LiveTable = execution.live_table
        records, notes = execution.rows, execution.checkpoints
        newest = records[-1]
        try:
            signed = notes[-1][0] if notes else 0
            live_table.append_committed(newest.version, newest.leaf, signed=signed)
            if live_table.subscribers and not self._cache.full:
                live_table.ring.extend(records)
            notice = CommitNotice(records, notes, origin=execution.origin)
            result = CommandResult(newest.version, execution.events)
            self._notify(live_table, notice)
            result.held = notice.held
            execution.answer(result)
            if execution.name is not None:
                first, count = records[0].version, len(records)
                live_table.stored_commands.settle(execution.name, execution.digest, first, count)
                if execution.waiters:
                    self._answer_waiters(execution, result)
            if execution.pending_draw is not None:
                execution.pending_draw.answer(execution.draw_outcome())
            if live_table.commit_waiters:
                live_table.notify_commit_waiters()
            for record in records:
                # Only the writer needed these, see `EventRecord`; others may keep the record.
                record.public, record.commitment, record.hidden = "", None, None
                record.command = record.digest = None
            grown = newest.version - live_table.weighed_at
            if grown >= EVENTS or len(newest.leaf) > LONG:
                self._cache.weigh(live_table)
            if signed:
                self._savepoints.write_due(live_table)
        except Exception as error:
            self._settle_after_internal_error(execution, error)
        if live_table.state is not TableState.ACTIVE:
            self.reloader.start_if_due(live_table)

    def lost(self, execution: CommandExecution, result: Result | DealerError) -> None:
        """Nothing of the append was written: the state in memory is ahead of the log."""
        if self._closed:
            return
        try:
            self._settle_lost(execution, result)
        except Exception as error:
            self._settle_after_internal_error(execution, error)
        self.reloader.start_if_due(execution.live_table)

    def _answer_waiters(self, execution: CommandExecution, result: CommandResult) -> None:
        stored = StoredCommand(execution.digest, execution.expected + 1, len(execution.rows))
        while execution.waiters:  # those that are left are answered after an internal error, too
            self._duplicates.answer(execution.live_table, execution.waiters[0], stored, result)
            del execution.waiters[0]

    def _settle_lost(self, execution: CommandExecution, result: Result | DealerError) -> None:
        live_table: LiveTable = execution.live_table
        live_table.append_lost()
        pending, waiting = execution.pending_draw, live_table.pending_draw
        if execution.then is None:
            if pending is not None:
                pending.postpone()  # another may wait for a later shuffle meanwhile
        elif waiting is not None and waiting.draw is execution.then:
            live_table.pending_draw = None  # the shuffle that it waited for never began
        waiters, execution.waiters = execution.waiters, []
        if isinstance(result, DealerError):
            execution.answer(unavailable(result))
        else:
            if isinstance(result, Known) and result.digest is not None:
                execution.duplicate_of = StoredCommand.read(result.version, result.digest)
            execution.attempts += 1
            live_table.pending_retries.append(execution)
        live_table.pending_retries.extend(waiters)

    def _settle_after_internal_error(self, execution: CommandExecution, error: Exception) -> None:
        """A bug, or a lack of memory: answer all who wait for the append, and reload the table."""
        live_table: LiveTable = execution.live_table
        live_table.chain.broken = True
        live_table.begin_reload()
        execution.answer(internal("settling an append failed", error))
        live_table.pending_retries.extend(execution.waiters)
        execution.waiters = []
        if execution.pending_draw is not None:
            execution.pending_draw.postpone()
