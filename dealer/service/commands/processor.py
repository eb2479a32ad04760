"""Command processor: the way of a command, from its request to its answer.

A command is decided at once against the optimistic state in memory, and its events go to the log's
writer. When the batch with them has been committed, the table's subscribers are notified and then
the caller is answered, in the order of versions. If the log refuses the append because another
process was quicker, everything decided on that state is void: the table is reloaded and the
commands are decided again.

A repeated command gets the answer that it got before, from memory or from the log. A command is
refused only once the refusal is certain, see `rejections.py`.
"""

from __future__ import annotations

import asyncio
from copy import copy

from dealer.errors import CommandReused, DealerError, Overloaded, Refused, VersionConflict
from dealer.eventlog import Appended, Duplicate, Log, Result
from dealer.eventlog.high_water_mark import HighWaterMark
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.stored_form import DIGEST
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.rejections import Rejections
from dealer.service.commands.table_lifecycle import TableLifecycle
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
    resolve,
    unavailable,
)
from dealer.service.tables.live_table import CommitNotice, LiveTable, Notices, TableState
from dealer.service.tables.loading import Loader
from dealer.service.tables.stored_savepoints import StoredSavepoints


class CommandProcessor:
    """Takes commands for any table of one log; `keys` are the house's.

    `notices` gets one of each commit. `lifecycle` loads and reloads the tables: commands that
    waited for it come back here.
    """

    def __init__(
        self,
        log: Log,
        keys: HouseKeys,
        loader: Loader,
        reader: EventReader,
        executor: CommandExecutor,
        cache: TableCache,
        recent: RecentEvents,
        savepoints: StoredSavepoints,
        notices: Notices,
        tasks: BackgroundTasks,
        mark: HighWaterMark | None,
    ) -> None:
        self._log = log
        self._recent = recent
        self._keys = keys
        self._reader = reader
        self._executor = executor
        self._cache = cache
        self._savepoints = savepoints
        self._notices = notices
        self._tasks = tasks
        self._closed = False
        self.lifecycle = TableLifecycle(
            log,
            loader,
            cache,
            savepoints,
            notices,
            tasks,
            mark,
            now=executor.now,
            decide=self._decide_again,
        )
        self._deadlines = self.lifecycle.deadlines
        self._rejections = Rejections(
            log,
            reader,
            self.lifecycle,
            tasks,
            submit=self.submit,
            answer_repeated=self.answer_repeated,
        )

    def close(self) -> None:
        """Publish and answer nothing more."""
        self._closed = True

    # From the request to the append

    def submit(self, live_table: LiveTable, execution: CommandExecution) -> None:
        """Decide a command now; its `done` is called once the events are on disk, or why not.

        It is called exactly once, also with what goes wrong here: nothing is raised.
        """
        # One function: each step in a function of its own would be another call for every draw.
        try:
            # 1. Name it. A repetition has the same name.
            key, name = execution.key, execution.name
            if key is not None and name is None:
                cmd = key.cmd
                if key.scope == ANONYMOUS_SCOPE:
                    # A repetition is answered with a token, so the database must not reveal the id.
                    keys = self._keys.of(live_table.table.key)
                    cmd = keys.command_digest(b"cmd " + cmd.encode()).hex()
                name = execution.name = f"{key.scope}/{cmd}"

            # 2. Wait for a reload, or refuse what cannot be taken now.
            if live_table.state is not TableState.ACTIVE:
                self._await_reload(live_table, execution)
                return
            if self._log.writer.full:
                # Before it is decided: what is decided must be appended, or the table reloaded.
                execution.answer(Overloaded("The server has too much to write; try again shortly."))
                return

            # 3. Answer a repetition. Before the decision, which the first execution has changed.
            if name is not None:
                stored = live_table.stored_commands.get(name)
                if stored is not None:
                    self.answer_repeated(live_table, execution, stored)
                    return
                first = live_table.table.version + 1
                execution.digest = self._digest(live_table, execution, first)

            # 4. Decide, encode, evolve. The table in memory is then ahead of the log.
            try:
                changed = self._executor.apply(live_table, execution)
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

            # 5. Append. A crash from here until COMMIT loses the command whole: nobody has seen
            # anything of it, and its caller, who has no answer, sends it again.
            live_table.begin_append()
            execution.on_result = self.on_result
            try:
                self._log.writer.submit(execution)
            except Exception as error:
                # It was evolved and will never be written: so is nothing that follows it.
                live_table.chain.broken = True
                self.on_result(execution, failed("queueing an append failed", error))
                return

            # 6. Set the timer that a shuffle needs. Not after the commit, which is milliseconds
            # later: if the append is lost, the reload sets the timer again.
            round_ = live_table.table.round
            if live_table.timer is not None or (round_ is not None and round_.shuffle is not None):
                self._deadlines.arm(live_table)
        except Exception as error:
            execution.origin = None  # if it was queued, its frames are not held back for the answer
            execution.answer(failed("submitting a command failed", error))

    async def execute(self, live_table: LiveTable, execution: CommandExecution) -> CommandResult:
        """`submit`, awaited; raises the refusal. The execution has no `done` of its own."""
        future: asyncio.Future[CommandResult] = asyncio.get_running_loop().create_future()
        execution.done = resolve(future)
        self.submit(live_table, execution)
        return await future

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
        self.lifecycle.reload_if_due(live_table)

    def _decide_again(self, live_table: LiveTable, execution: CommandExecution) -> None:
        """Take a command whose append was lost, or that waited for a reload."""
        if execution.duplicate_of is not None:
            self.answer_repeated(live_table, execution, execution.duplicate_of)
        elif execution.attempts >= ATTEMPTS:
            execution.answer(VersionConflict("The table changed each time; read it and try again."))
        else:
            self.submit(live_table, execution)

    # From the commit to the answer

    def on_result(self, execution: CommandExecution, result: Result | DealerError) -> None:
        """Called by the log's writer on the loop, once for each append, in the order of commits.

        If nothing was written, the state in memory is ahead of the log.
        """
        if self._closed:
            return
        live_table: LiveTable = execution.live_table
        if type(result) is not Appended:
            self._on_lost(live_table, execution, result)
            return
        records, notes = execution.rows, execution.checkpoints
        newest = records[-1]
        try:
            # A crash from here on loses frames and answers, never events: subscribers resume from
            # the log, and the caller's repetition is answered from it.
            # 1. `committed`, first: what is called below may ask what is on disk.
            signed = notes[-1][0] if notes else 0
            live_table.append_committed(newest.version, newest.leaf, signed=signed)
            # 2. The memory, before the notice: who lags already reads the new events from there.
            self._recent.add(live_table.id, records, keep=bool(live_table.subscribers))
            # 3. Subscribers before the caller: an answer never overtakes the events it speaks of.
            # The outcome is made before: once the caller's own frames are held back for the answer
            # (`held`), nothing may fail until it is given.
            notice = CommitNotice(records, notes, origin=execution.origin)
            outcome = CommandResult(newest.version, execution.events)
            self._notices.send(live_table, notice)
            outcome.held = notice.held
            # 4. The caller, then the repetitions and the draw that waited for this append.
            execution.answer(outcome)
            if execution.name is not None:
                first, count = records[0].version, len(records)
                live_table.stored_commands.add(execution.name, execution.digest, first, count)
                if execution.waiters:
                    self._answer_waiters(execution, newest.version)
            if execution.pending_draw is not None:
                execution.pending_draw.answer(execution.draw_outcome())
            # 5. Snapshots, checkpoints and rejections that waited for this version.
            if live_table.commit_waiters:
                live_table.notify_commit_waiters()
            # 6. What only the writer needed, see `EventRecord`; others may keep the record.
            for record in records:
                record.public, record.commitment, record.hidden = "", None, None
                record.command = record.digest = None
            # 7. Upkeep.
            grown = newest.version - live_table.weighed_at
            # With a checkpoint a round opened or closed, or the table did: its size is another.
            # Appends that were counted while in flight are over with the last of them.
            over = live_table.weighed_busy and not live_table.in_flight
            if signed or over or grown >= EVENTS or len(newest.leaf) > LONG:
                self._cache.weigh(live_table)
            if signed:
                self._savepoints.write_due(live_table)
        except Exception as error:
            self._recover(execution, error)
        if live_table.state is not TableState.ACTIVE:
            self.lifecycle.reload_if_due(live_table)

    def _answer_waiters(self, execution: CommandExecution, version: int) -> None:
        # Without the frames that are held for the caller: another connection may see less.
        outcome = CommandResult(version, execution.events, repeated=True)
        stored = StoredCommand(execution.digest, execution.version, len(execution.rows))
        while execution.waiters:  # those that are left are answered after an internal error, too
            waiter = execution.waiters[0]
            self.answer_repeated(execution.live_table, waiter, stored, outcome)
            del execution.waiters[0]

    def _on_lost(
        self, live_table: LiveTable, execution: CommandExecution, result: Result | DealerError
    ) -> None:
        """Nothing was written, as `result` says: reload, and decide again what may succeed then.

        The appends of the same chain that follow are lost, too: each comes here, and the reload
        begins after the last one.
        """
        try:
            self._keep_for_retry(live_table, execution, result)
        except Exception as error:
            self._recover(execution, error)
        self.lifecycle.reload_if_due(live_table)

    def _keep_for_retry(
        self, live_table: LiveTable, execution: CommandExecution, result: Result | DealerError
    ) -> None:
        live_table.append_lost()
        carried, waiting = execution.pending_draw, live_table.pending_draw
        if execution.draw_when_sealed is None:
            if carried is not None:
                carried.ask_to_repeat()  # another may wait for a later shuffle meanwhile
        elif waiting is not None and waiting.draw is execution.draw_when_sealed:
            live_table.pending_draw = None  # the shuffle that it waited for never began
        waiters, execution.waiters = execution.waiters, []
        if isinstance(result, DealerError):
            # The database fails. A caller that knows can send it again; one that waits cannot.
            execution.answer(unavailable(result))
        else:
            if isinstance(result, Duplicate) and result.digest is not None:
                execution.duplicate_of = StoredCommand.read(result.version, result.digest)
            execution.attempts += 1
            live_table.pending_retries.append(execution)
        # Each is decided for itself: the first one may have failed for a reason of its own.
        live_table.pending_retries.extend(waiters)

    def _recover(self, execution: CommandExecution, error: Exception) -> None:
        """A bug, or a lack of memory: answer all who wait for the append, and reload the table.

        The append itself may be on disk: a repetition finds it there.
        """
        live_table: LiveTable = execution.live_table
        live_table.chain.broken = True
        live_table.begin_reload()
        execution.answer(internal("publishing an append failed", error))
        live_table.pending_retries.extend(execution.waiters)
        execution.waiters = []
        if execution.pending_draw is not None:
            execution.pending_draw.ask_to_repeat()

    # Repetitions

    def answer_repeated(
        self,
        live_table: LiveTable,
        execution: CommandExecution,
        stored: CommandExecution | StoredCommand,
        outcome: CommandResult | None = None,
    ) -> None:
        """Answer `execution`, which has the id of `stored`; `outcome` is its result, if at hand.

        A command with another content is refused with CommandReused. While the first one is in
        flight the other waits for it.
        """
        if stored.digest != self._digest(live_table, execution, stored.version):
            execution.answer(
                CommandReused("This command id was used for another command; give each its own.")
            )
        elif isinstance(stored, CommandExecution):
            stored.waiters.append(execution)
        elif outcome is not None:
            execution.answer(outcome)
        else:
            self._tasks.start(self._answer_from_log(live_table, execution, stored))

    def _digest(self, live_table: LiveTable, execution: CommandExecution, version: int) -> bytes:
        """What is stored next to the id of a command whose first event has this version.

        A repetition is answered with what that event says, the token of its seat too. So an
        event that is given the id of another command in the database does not answer it.
        """
        keys, public, key = self._keys, live_table.table.key, execution.key
        if keys.public_key != public:  # an older table's are older
            keys = keys.of(public)
        name, content = (execution.name or "").encode(), b"" if key is None else key.content
        place = b"command " + live_table.id + version.to_bytes(8, "big")
        return keys.command_digest(place + len(name).to_bytes(4, "big") + name + content)[:DIGEST]

    async def _answer_from_log(
        self, live_table: LiveTable, execution: CommandExecution, stored: StoredCommand
    ) -> None:
        outcome: Outcome
        try:
            await self.lifecycle.catch_up(live_table)  # another process may have written it
            after, count = stored.version - 1, stored.count
            events = await self._reader.events(live_table, after=after, count=count)
            outcome = CommandResult(after + count, events, repeated=True)
        except Exception as error:
            outcome = unavailable(failed("reading a command's events failed", error))
        execution.answer(outcome)
