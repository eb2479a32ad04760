"""Reload: brings a live table up to date with the log after an append was lost, after another
process wrote events, or after the log was rewound to an older state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dealer.backoff import around
from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.deadlines import Deadlines
from dealer.service.tables.cache import TableCache
from dealer.service.tables.execution import CommandExecution, may_pass, report, unavailable
from dealer.service.tables.live_table import CommitNotice, LiveTable, NoticeListener
from dealer.service.tables.loading import Loader

NEVER = 2**63
"""A version that no table reaches: its waiters are called when the table was reloaded."""

RETRY_SECONDS = 0.5
"""Mean seconds until a table whose log cannot be read is tried again."""


class Reloader:
    """Reloads tables from `log`.

    `notify` receives the events of other processes, after `on_foreign_events` was called with the
    table; `retry` receives the requests that waited, and is called after every reload.
    """

    def __init__(
        self,
        log: Log,
        loader: Loader,
        cache: TableCache,
        deadlines: Deadlines,
        tasks: BackgroundTasks,
        *,
        notify: NoticeListener,
        on_foreign_events: Callable[[LiveTable], None],
        retry: Callable[[LiveTable, list[CommandExecution]], None],
    ) -> None:
        self._log = log
        self._loader = loader
        self._cache = cache
        self._deadlines = deadlines
        self._tasks = tasks
        self._notify = notify
        self._on_foreign_events = on_foreign_events
        self._retry = retry

    def start_if_due(self, live_table: LiveTable) -> None:
        """Reload the table in a task if it has to be and no append of it is in flight."""
        if live_table.reload_due:
            self._tasks.start(self._reload(live_table))

    async def catch_up(self, live_table: LiveTable) -> None:
        """Read and publish the events that other processes have written to this table.

        So, too, where the log was rewound to an older state. Raises DatabaseError, as
        DatabaseDamaged where the table's rows do not end at its version, Unavailable or
        TableArchived.
        """
        # Each turn answers a version that another process has written meanwhile: a reload reaches
        # the one that the log has at its moment, or gives the table up.
        while True:
            live_table.require_here()
            committed = live_table.committed
            head = await self._log.head(live_table.id) or 0
            live_table.require_here()  # it may have been given up meanwhile
            if committed <= head <= live_table.committed:
                return
            if not (live_table.reloading or live_table.in_flight):
                live_table.begin_reload()
                # A task of its own: the caller may be cancelled meanwhile.
                self.start_if_due(live_table)
            # Appends in flight meet the foreign events in the log, as a conflict.
            await live_table.wait_committed(
                NEVER if live_table.reloading else live_table.table.version
            )

    async def _reload(self, live_table: LiveTable) -> None:
        while True:
            try:
                fresh, notice = await self._loader.advance(live_table)
                break
            except Exception as error:
                if not isinstance(error, DealerError):
                    report("reloading a table failed", error)
                if not may_pass(error):
                    self._give_up(live_table, error)
                    return
                for execution in live_table.take_pending_retries():
                    execution.answer(unavailable(error))
                live_table.read_failed()
                # Spread the retries of all tables and nodes for when the database is back.
                await asyncio.sleep(around(RETRY_SECONDS))
        try:
            live_table.adopt(fresh)
            if notice.entries:
                self._on_foreign_events(live_table)
            if notice.entries or notice.reset:
                self._notify(live_table, notice)
        except Exception as error:  # half published: subscribers and callers begin again
            report("publishing a reloaded table failed", error)
            self._give_up(live_table, error)
            return
        # Another process may have sealed the shuffle that a draw waits for.
        live_table.postpone_draw()
        self._retry(live_table, live_table.resume())
        self._cache.weigh(live_table)

    def _give_up(self, live_table: LiveTable, error: Exception) -> None:
        """Another process has archived the table, or its log cannot be read: no retry helps.

        Its subscribers are disconnected.
        """
        live_table.give_up(error)
        live_table.postpone_draw()
        self._deadlines.forget(live_table)
        self._cache.remove(live_table)
        self._notify(live_table, CommitNotice([], [], reset=True))
