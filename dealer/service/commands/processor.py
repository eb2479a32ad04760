"""Command processor: the way of a command, from its request to its answer.

A command is decided at once against the optimistic state in memory, and its events go to the log's
writer. When the batch with them has been committed, the table's subscribers are notified and then
the caller is answered, in the order of versions. If the log refuses the append because another
process was quicker, everything decided on that state is void: the table is reloaded and the
commands are decided again.

A repeated command gets the answer that it got before, from memory or from the log. A command is
refused only once the refusal is certain, for the optimistic state that it was refused on may turn
out to be void, the command may have been carried out earlier under the same id, and where several
nodes share a database another node may have written what allows it. All of this holds as well for
a command that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from dealer.errors import (
    CommandReused,
    DealerError,
    Overloaded,
    Refused,
    VersionConflict,
)
from dealer.eventlog import Appended, Duplicate, Log, Result
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.stored_form import DIGEST
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.deadlines import Deadlines
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.reload import Reloader
from dealer.service.tables.cache import EVENTS, LONG, TableCache
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import (
    ANONYMOUS_SCOPE,
    ATTEMPTS,
    CommandExecution,
    CommandResult,
    Outcome,
    StoredCommand,
    failed,
    internal,
    unavailable,
)
from dealer.service.tables.live_table import (
    CommitNotice,
    LiveTable,
    NoticeListener,
    PendingRejection,
    TableState,
)
from dealer.service.tables.loading import Loader
from dealer.service.tables.stored_savepoints import StoredSavepoints


class CommandProcessor:
    """Takes commands for any table of one log; `key` has the house's keys.

    `notify` receives a notice of each commit; `on_foreign_events` is called with a table before
    events of other processes are published there.
    """

    def __init__(
        self,
        log: Log,
        key: HouseKeys,
        loader: Loader,
        reader: EventReader,
        executor: CommandExecutor,
        cache: TableCache,
        recent: RecentEvents,
        tasks: BackgroundTasks,
        savepoints: StoredSavepoints,
        *,
        notify: NoticeListener,
        on_foreign_events: Callable[[LiveTable], None],
    ) -> None:
        self._log = log
        self._recent = recent
        self._key = key
        self._reader = reader
        self._executor = executor
        self._cache = cache
        self._tasks = tasks
        self._savepoints = savepoints
        self._notify = notify
        self._closed = False
        self.deadlines = Deadlines(executor, self.submit)
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

    def close(self) -> None:
        """Publish and answer nothing more."""
        self._closed = True

    def submit(self, live_table: LiveTable, execution: CommandExecution) -> None:
        """Decide a command now; its `done` is called once the events are on disk, or why not.

        It is called exactly once, also with what goes wrong here: nothing is raised.
        """
        try:
            key, name = execution.key, execution.name
            if key is not None and name is None:
                keys, public, cmd = self._key, live_table.table.key, key.cmd
                if keys.public_key != public:  # an older table's are older
                    keys = keys.of(public)
                if key.scope == ANONYMOUS_SCOPE:
                    # A repetition is answered with a token, so the database must not reveal the id.
                    cmd = keys.command_digest(b"cmd " + cmd.encode()).hex()
                name = execution.name = f"{key.scope}/{cmd}"
                execution.digest = keys.command_digest(key.content)[:DIGEST]
            if live_table.state is not TableState.ACTIVE:
                self._await_reload(live_table, execution)
                return
            if self._log.writer.full:
                execution.answer(Overloaded("The server has too much to write; try again shortly."))
                return
            if name is not None:
                stored = live_table.stored_commands.get(name)
                if stored is not None:
                    self.answer_repeated(live_table, execution, stored)
                    return
            try:
                changed = self._executor.apply(live_table, execution)
            except Refused as refusal:
                self._reject(live_table, execution, refusal)
                return
            except Exception as error:
                self._reload_after_internal_error(live_table, execution, error)
                return
            if not changed:
                nothing = CommandResult(live_table.table.version, [])
                self._reject(live_table, execution, nothing)
                return
            live_table.begin_append()
            execution.on_result = self.on_result
            try:
                self._log.writer.submit(execution)
            except Exception as error:
                live_table.chain.broken = True
                self.on_result(execution, failed("queueing an append failed", error))
                return
            round_ = live_table.table.round
            if live_table.timer is not None or (round_ is not None and round_.shuffle is not None):
                self.deadlines.arm(live_table)
        except Exception as error:
            execution.origin = None  # if it was queued, its frames are not held back for the answer
            execution.answer(failed("submitting a command failed", error))

    def _await_reload(self, live_table: LiveTable, execution: CommandExecution) -> None:
        if live_table.why_unreadable is not None:
            execution.answer(unavailable(copy(live_table.why_unreadable)))
        else:
            live_table.pending_retries.append(execution)

    def _reload_after_internal_error(
        self, live_table: LiveTable, execution: CommandExecution, error: Exception
    ) -> None:
        """A bug interrupted a decision half-way: the state in memory is undefined, so reload it."""
        live_table.chain.broken = True
        live_table.begin_reload()
        execution.answer(internal("deciding a command failed", error))
        self.reloader.start_if_due(live_table)

    def _retry(self, live_table: LiveTable, executions: Sequence[CommandExecution]) -> None:
        """Decide again what was void or waited for a reload."""
        for each in executions:
            if each.duplicate_of is not None:
                self.answer_repeated(live_table, each, each.duplicate_of)
            elif each.attempts >= ATTEMPTS:
                each.answer(VersionConflict("The table changed each time; read it and try again."))
            else:
                self.submit(live_table, each)
        self.deadlines.arm(live_table)

    # After a commit, on the loop

    def on_result(self, execution: CommandExecution, result: Result | DealerError) -> None:
        """Called by the log's writer, once for each append, in the order of commits.

        Publish first, then answer the caller, then the others that waited for it. If nothing was
        written, the state in memory is ahead of the log.
        """
        if self._closed:
            return
        live_table: LiveTable = execution.live_table
        if type(result) is not Appended:
            self._lost(live_table, execution, result)
            return
        records, notes = execution.rows, execution.checkpoints
        newest = records[-1]
        try:
            signed = notes[-1][0] if notes else 0
            live_table.append_committed(newest.version, newest.leaf, signed=signed)
            self._recent.add(live_table.id, records, keep=bool(live_table.subscribers))
            notice = CommitNotice(records, notes, origin=execution.origin)
            outcome = CommandResult(newest.version, execution.events)
            self._notify(live_table, notice)
            outcome.held = notice.held
            execution.answer(outcome)
            if execution.name is not None:
                first, count = records[0].version, len(records)
                live_table.stored_commands.settle(execution.name, execution.digest, first, count)
                if execution.waiters:
                    self._answer_waiters(execution, outcome)
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

    def _answer_waiters(self, execution: CommandExecution, outcome: CommandResult) -> None:
        stored = StoredCommand(execution.digest, execution.expected + 1, len(execution.rows))
        while execution.waiters:  # those that are left are answered after an internal error, too
            waiter = execution.waiters[0]
            self.answer_repeated(execution.live_table, waiter, stored, outcome)
            del execution.waiters[0]

    def _lost(
        self, live_table: LiveTable, execution: CommandExecution, result: Result | DealerError
    ) -> None:
        """Reload the table, and decide again or answer: nothing was written, as `result` says."""
        try:
            self._settle_lost(live_table, execution, result)
        except Exception as error:
            self._settle_after_internal_error(execution, error)
        self.reloader.start_if_due(live_table)

    def _settle_lost(
        self, live_table: LiveTable, execution: CommandExecution, result: Result | DealerError
    ) -> None:
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
            if isinstance(result, Duplicate) and result.digest is not None:
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

    # Repetitions

    def answer_repeated(
        self,
        live_table: LiveTable,
        execution: CommandExecution,
        stored: CommandExecution | StoredCommand,
        outcome: CommandResult | None = None,
    ) -> None:
        """Answer `execution`, whose id is that of `stored`; `outcome` is its result, if at hand.

        A command with another content is refused with CommandReused. While the first one is in
        flight the other waits for it.
        """
        execution.is_replay = True
        if stored.digest != execution.digest:
            execution.answer(
                CommandReused("This command id was used for another command; give each its own.")
            )
        elif isinstance(stored, CommandExecution):
            stored.waiters.append(execution)
        elif outcome is not None:
            execution.answer(outcome)
        else:
            self._tasks.start(self._answer_from_log(live_table, execution, stored))

    async def _answer_from_log(
        self, live_table: LiveTable, execution: CommandExecution, stored: StoredCommand
    ) -> None:
        outcome: Outcome
        try:
            await self.reloader.catch_up(live_table)  # another process may have written it
            after, count = stored.version - 1, stored.count
            events = await self._reader.events(live_table, after=after, count=count)
            outcome = CommandResult(after + count, events)
        except Exception as error:
            outcome = unavailable(failed("reading a command's events failed", error))
        execution.answer(outcome)

    # Rejections

    def _reject(self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome) -> None:
        """Refuse a command that the optimistic state does not allow, or that changes nothing.

        `outcome` is the refusal, or a result without events.
        """
        version = live_table.table.version
        if execution.name is not None and live_table.stored_commands.evicted:
            self._tasks.start(self._reject_unless_repeated(live_table, execution, outcome, version))
        else:
            self._reject_when_committed(live_table, execution, outcome, version)

    async def _reject_unless_repeated(
        self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome, version: int
    ) -> None:
        """Search the log first: this very command may have been carried out long ago."""
        chain = live_table.chain
        try:
            stored = await self._reader.find_command(live_table, execution.name or "")
        except Exception as error:
            execution.answer(unavailable(failed("searching a command failed", error)))
            return
        if stored is not None:
            self.answer_repeated(live_table, execution, stored)
        elif live_table.chain is not chain:
            # Reloaded meanwhile: the reason may be void, or the command among the new events.
            self.submit(live_table, execution)
        else:
            self._reject_when_committed(live_table, execution, outcome, version)

    def _reject_when_committed(
        self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome, version: int
    ) -> None:
        """Reject once the state that the command was decided on is on disk; it may be lost."""

        def on_outcome(committed: bool) -> None:
            if not committed:
                self.submit(live_table, execution)
            elif not self._log.shared:
                execution.answer(outcome)
            else:
                rejection = PendingRejection(execution, outcome, live_table.chain)
                live_table.pending_rejections.append(rejection)
                if not live_table.confirming:
                    live_table.confirming = True
                    self._tasks.start(self._confirm_rejections(live_table))

        live_table.when_committed(version, on_outcome)

    async def _confirm_rejections(self, live_table: LiveTable) -> None:
        """Reject what no other node has written anything against.

        One look at the log's head serves all rejections that were pending before it.
        """
        try:
            while live_table.pending_rejections:
                pending, live_table.pending_rejections = live_table.pending_rejections, []
                try:
                    await self.reloader.catch_up(live_table)
                except Exception as error:
                    answer = unavailable(failed("confirming refusals failed", error))
                    for execution, _, _ in pending:
                        execution.answer(answer)
                    continue
                for execution, outcome, chain in pending:
                    execution.attempts += 1
                    if live_table.chain is chain or execution.attempts >= ATTEMPTS:
                        execution.answer(outcome)
                    else:
                        self.submit(live_table, execution)
        finally:
            live_table.confirming = False
