"""Command processor: decides commands, appends their events to the log, publishes and answers.

A command is decided at once against the optimistic state in memory, and its events go to the log's
writer. When the batch with them has been committed, the table's subscribers are notified and then
the caller is answered, in the order of versions. If the log refuses the append because another
process was quicker, everything decided on that state is void: the table is reloaded and the
commands are decided again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy

from dealer.errors import (
    DealerError,
    Overloaded,
    Refused,
    Unavailable,
    VersionConflict,
)
from dealer.eventlog import Appended, Known, Log, Result
from dealer.service.background_tasks import BackgroundTasks
from dealer.service.deadlines import Deadlines
from dealer.service.duplicates import DuplicateCommands
from dealer.service.event_reader import EventReader
from dealer.service.executor import CommandExecutor, PendingAppend
from dealer.service.live_table import LiveTable, TableState
from dealer.service.loading import Loader
from dealer.service.rejections import RejectionConfirmer
from dealer.service.reload import Reloader
from dealer.service.requests import ATTEMPTS, CommandResult, Request, StoredCommand, unavailable
from dealer.service.snapshots import CommitNotice, NoticeListener
from dealer.service.stored_savepoints import StoredSavepoints
from dealer.service.table_cache import TableCache

INTERNAL = "The server had an internal error; its log says more."


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
        self._duplicates = DuplicateCommands(reader, self.reloader, tasks)
        self._rejections = RejectionConfirmer(
            log, reader, self.reloader, self._duplicates, tasks, submit=self.submit
        )

    def close(self) -> None:
        """Publish and answer nothing more."""
        self._closed = True

    def submit(self, live_table: LiveTable, request: Request) -> None:
        """Decide a request now; its `done` is called once the events are on disk, or why not."""
        if live_table.why_unreadable is not None:
            request.done(unavailable(copy(live_table.why_unreadable)))
            return
        if live_table.reloading:
            live_table.pending_retries.append(request)
            return
        if self._log.full:
            request.done(Overloaded("The server has too much to write; try again shortly."))
            return
        if request.name is not None:
            stored = live_table.stored_commands.get(request.name)
            if stored is not None:
                self._duplicates.answer(live_table, request, stored)
                return
        try:
            append = self._executor.decide(live_table, request, self._on_settled)
        except Refused as refusal:
            self._rejections.reject(live_table, request, refusal)
            return
        except Exception as error:
            self._reload_after_internal_error(live_table, request, error)
            return
        if append is None:
            nothing = CommandResult(live_table.table.version, [])
            self._rejections.reject(live_table, request, nothing)
            return
        live_table.begin_append()
        try:
            self._log.submit(append)
        except Exception as error:
            live_table.chain.broken = True
            if not isinstance(error, DealerError):
                self._report("queueing an append failed", error)
                error = Unavailable(INTERNAL)
            append.settle(error)
            return
        round_ = live_table.table.round
        if live_table.timer is not None or (round_ is not None and round_.shuffle is not None):
            self.deadlines.arm(live_table)

    def _reload_after_internal_error(
        self, live_table: LiveTable, request: Request, error: Exception
    ) -> None:
        """A bug interrupted a decision half-way: the state in memory is undefined, so reload it."""
        live_table.chain.broken = True
        live_table.begin_reload()
        self._report("deciding a command failed", error)
        request.done(Unavailable(INTERNAL))
        self.reloader.start_if_due(live_table)

    def _report(self, message: str, error: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})

    def _retry(self, live_table: LiveTable, requests: Sequence[Request]) -> None:
        """Decide again what was void or waited for a reload."""
        for request in requests:
            if request.duplicate_of is not None:
                self._duplicates.answer(live_table, request, request.duplicate_of)
            elif request.attempts >= ATTEMPTS:
                request.done(VersionConflict("The table changed each time; read it and try again."))
            else:
                self.submit(live_table, request)
        self.deadlines.arm(live_table)

    # After a commit, on the loop

    def _on_settled(self, pending: PendingAppend, result: Result | DealerError) -> None:
        if self._closed:
            return
        try:
            if isinstance(result, Appended):
                self._append_committed(pending)
            else:
                self._append_lost(pending, result)
        except Exception as error:
            self._settle_after_internal_error(pending, error)
        if pending.live_table.state is not TableState.ACTIVE:
            self.reloader.start_if_due(pending.live_table)

    def _settle_after_internal_error(self, pending: PendingAppend, error: Exception) -> None:
        """A bug, or a lack of memory: answer all who wait for the append, and reload the table."""
        live_table = pending.live_table
        live_table.chain.broken = True
        live_table.begin_reload()
        pending.request.settle(Unavailable(INTERNAL))
        if pending.stored is not None:
            live_table.pending_retries.extend(pending.stored.waiters)
            pending.stored.waiters.clear()
        if pending.pending_draw is not None:
            pending.pending_draw.postpone()
        self._report("settling an append failed", error)

    def _append_committed(self, pending: PendingAppend) -> None:
        """Publish first, then answer the caller, then the others that waited for it."""
        live_table, request = pending.live_table, pending.request
        entries, notes, last = pending.entries, pending.checkpoints, pending.end
        signed = notes[-1][0] if notes else 0
        live_table.append_committed(last, entries[-1].leaf, signed=signed)
        if live_table.subscribers and not self._cache.full:
            live_table.ring.extend(entries)
        self._notify(live_table, CommitNotice(entries, notes))
        result = CommandResult(last, pending.events)
        request.settle(result)
        stored = pending.stored
        if stored is not None:
            stored.committed = True
            live_table.store_command(request.name or "", stored)
            while stored.waiters:
                self._duplicates.answer(live_table, stored.waiters.pop(0), stored, result)
        if pending.pending_draw is not None:
            for answer in pending.pending_draw.answers:
                answer(pending.draw_outcome())
        if live_table.commit_waiters:
            live_table.notify_commit_waiters()
        self._cache.committed(live_table)
        if signed:
            self._savepoints.write_due(live_table)

    def _append_lost(self, pending: PendingAppend, result: Result | DealerError) -> None:
        """Nothing of the append was written: the state in memory is ahead of the log."""
        live_table, request = pending.live_table, pending.request
        live_table.append_lost()
        if request.then is None:
            if pending.pending_draw is not None:
                pending.pending_draw.postpone()  # another may wait for a later shuffle meanwhile
        elif live_table.pending_draw is not None and live_table.pending_draw.draw is request.then:
            live_table.pending_draw = None  # the shuffle that it waited for never began
        if isinstance(result, DealerError):
            request.settle(unavailable(result))
        else:
            if isinstance(result, Known) and result.digest is not None:
                request.duplicate_of = StoredCommand.read(result.version, result.digest)
            request.attempts += 1
            live_table.pending_retries.append(request)
        if pending.stored is not None:
            live_table.pending_retries.extend(pending.stored.waiters)
