"""Service: the facade that the gateway and the command line use.

It takes commands and queries for any table of one event log, and notifies its listeners of what
became public.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.high_water_mark import HighWaterMark
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.protocols import Notifier
from dealer.eventlog.recent import RecentEvents
from dealer.feed.feed import Feed
from dealer.game.commands import Command, Draw, DrawAtRandom, OpenTable
from dealer.game.rules import for_new_table
from dealer.projector.queries import FINISHED
from dealer.projector.scheduler import ProjectionScheduler
from dealer.service.clock import Clock, utc_ms
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.commit_stats import CommitStats
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.maintenance import MaintenanceMode
from dealer.service.commands.processor import CommandProcessor
from dealer.service.commands.random_draws import RandomDraws
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.identity.seat_claims import SeatClaims
from dealer.service.identity.service_keys import ServiceKeys
from dealer.service.identity.service_tables import Owner, ServiceJournal, ServiceTables
from dealer.service.identity.tokens import Tickets, TokenKeys
from dealer.service.nodes.head_poller import HeadPoller
from dealer.service.nodes.presence import SharedPresence
from dealer.service.reading.bundle import DOWNLOAD_CHUNK, BundleRange, bundle_lines
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.reading.consistency import ConsistencyProofs
from dealer.service.reading.lobby import PER_NETWORK, Lobby, Openers
from dealer.service.reading.past_states import PastStates
from dealer.service.tables.archive import ArchiveFolder, require_here
from dealer.service.tables.cache import BYTES, TABLES, TableCache
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import (
    CommandExecution,
    CommandResult,
    IdempotencyKey,
    OnResult,
    resolve,
)
from dealer.service.tables.insecure_decks import InsecureDecks
from dealer.service.tables.live_table import CommitNotice, LiveTable, NoticeListener
from dealer.service.tables.loading import Loader
from dealer.service.tables.round_secret_cache import RoundSecretCache
from dealer.service.tables.stored_savepoints import StoredSavepoints
from dealer.service.tables.table_ids import check_rules, id_and_key
from dealer.webhooks.runner import WebhookRunner


class Service:
    """The tables of one event log.

    `house` is the name of the house in origins, without space or `+`. Tables in memory take about
    `memory` bytes at most, and at most `tables` of them are idle. The lobby lists at most
    `per_network` tables that one network opened. Bundles of archived tables are read from the
    folder `archive`. With `insecure_test_decks` a test may choose what shuffles give. `program` is
    what `dealer serve` notes of itself before a round, see `CommandExecutor`. `clock` is
    the wall clock, milliseconds since 1970. `open_service` sets `projection`, `hints` and
    `webhooks`, for the metrics.

    What one part does alone is called as an attribute: `now` (the clock), `live_table` (if it is in
    memory), `tokens_of` (of the tables that are signed under a key), `catch_up` (with what other
    processes have written), `entries`, `snapshot` and `checkpoint`.
    """

    def __init__(
        self,
        log: Log,
        key: HouseKeys,
        *,
        house: str = "localhost",
        tables: int = TABLES,
        memory: int = BYTES,
        per_network: int = PER_NETWORK,
        archive: Path | None = None,
        insecure_test_decks: bool = False,
        program: str = "",
        clock: Clock = utc_ms,
    ) -> None:
        self._insecure_decks = InsecureDecks(allowed=insecure_test_decks)
        self._listeners: list[NoticeListener] = []
        self.stats = CommitStats()
        self.projection: ProjectionScheduler | None = None
        self.hints: Notifier | None = None
        self.webhooks: WebhookRunner | None = None
        self.maintenance = MaintenanceMode()
        self.service_keys = ServiceKeys()
        self.damaged = DamagedTables()
        self.recent = RecentEvents(bound=memory // 4)
        self.feed = Feed(
            log, self.recent, self.damaged, enabled=lambda: self.service_keys.any_reads
        )
        self.archive = ArchiveFolder(archive)
        self.service_tables = ServiceTables(log)
        self.service_journal = ServiceJournal(log)
        self._mark: HighWaterMark | None = None
        self.log = log
        self.now = clock
        self._key = key
        self.tokens_of = TokenKeys(key).of
        self.openers = Openers(log, key)
        self.lobby = Lobby(log, self.openers, per_network=per_network)
        self.finished = Lobby(log, self.openers, per_network=per_network, listed=FINISHED)
        secrets = RoundSecretCache(log, key)
        self.reader = EventReader(log, self.recent, secrets, self.damaged)
        self.entries = self.reader.entries
        self.consistency = ConsistencyProofs(log, self.damaged)
        self.past_states = PastStates(log, secrets, self.damaged)
        self.savepoints = StoredSavepoints(log, key, secrets)
        self.loader = Loader(
            log, secrets, self.reader, self.savepoints, self._insecure_decks, self.damaged
        )
        self.tables = TableCache(
            self.loader,
            self.recent,
            bound=tables,
            bytes_bound=memory,
            leave=lambda live_table: self.lifecycle.leave(live_table),
        )
        self.live_table = self.tables.get
        self._executor = CommandExecutor(
            key,
            house=house,
            maintenance=self.maintenance,
            cache=self.tables,
            insecure_decks=self._insecure_decks,
            program=program,
            clock=clock,
        )
        self._tasks = BackgroundTasks()
        self.processor = CommandProcessor(
            log,
            key,
            self.loader,
            self.reader,
            self._executor,
            self.tables,
            self.recent,
            self._tasks,
            self.savepoints,
            notify=self._notify,
            on_foreign_events=self._record_mark,
        )
        self._reloader = self.processor.reloader
        self.catch_up = self._reloader.catch_up
        self.lifecycle = TableLifecycle(
            log,
            self.tables,
            self._reloader,
            self.processor.deadlines,
            self.savepoints,
            on_load=lambda live_table: self._record_mark(live_table, old=True),
        )
        self.wakeups = self.lifecycle.wakeups
        self.checkpoints = Checkpoints(
            log, self._reloader, self._executor, self._tasks, self._notify
        )
        self.snapshot, self.checkpoint = self.checkpoints.snapshot, self.checkpoints.checkpoint
        self.presence = SharedPresence(log)
        self.head_poller = HeadPoller(
            log, self.tables, self._reloader, self.checkpoints, self.presence
        )
        self.tickets = Tickets(key, self.service_keys, clock)
        self.seat_claims = SeatClaims(log, key, self.execute, self.catch_up)
        self._draws = RandomDraws(self.processor, self.reader, self._tasks)

    @property
    def public_key(self) -> bytes:
        """The Ed25519 key, 32 bytes, that new tables are signed under."""
        return self._key.public_key

    async def close(self) -> None:
        """Stop all work on tables; the log is the caller's to close."""
        await self.service_journal.close()
        await self.lifecycle.close()
        self.processor.close()
        await self._tasks.close()
        await self.presence.close()

    def use_mark(self, mark: HighWaterMark) -> None:
        """Record in `mark` from now on what is committed here, and what other processes wrote."""
        self._mark = mark
        self.log.writer.mark = mark.wrote

    def _record_mark(self, live_table: LiveTable, *, old: bool = False) -> None:
        if self._mark is not None:
            at = live_table.table.at
            self._mark.saw(live_table.id, live_table.committed, live_table.leaf, at=at, old=old)

    def on_notice(self, listener: NoticeListener) -> None:
        """Register a listener for the notices of all tables.

        It is called on the loop for each commit, of this process or of another, in the order of a
        table's versions; for cosignatures; and where the log was rewound. Listeners are called in
        the order of their registration.
        """
        self._listeners.append(listener)

    def _notify(self, live_table: LiveTable, notice: CommitNotice) -> None:
        if notice.reset:
            self.recent.forget()
            self.feed.subjects.forget()
        for listener in self._listeners:
            try:
                listener(live_table, notice)
            except Exception as error:  # the others are called, and the caller is answered
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "notifying of an append failed", "exception": error}
                )

    # Tables

    async def load(self, table: str) -> LiveTable:
        """The table, from memory or from the log; UnknownTable if there is none.

        It has every event that any process had committed before the call. Raises Overloaded where
        it is not in memory and the tables in use leave no room for it.
        """
        return await self.lifecycle.load(table)

    async def table_opened_by(self, key: IdempotencyKey) -> LiveTable:
        """The table that a command with this unguessable key has opened; as `load` otherwise."""
        table, _ = await id_and_key(key, self.log, self._key, now=self.now())
        return await self.load(table.hex())

    def subscribe(self, live_table: LiveTable, subscriber: object) -> None:
        """Keep the table in memory, with its newest events, until `unsubscribe`."""
        if self.hints is not None and not live_table.subscribers:
            # From now on other nodes send hints of this table; its row in `presence` comes later.
            self.hints.notify([live_table.id])
        live_table.subscribers.add(subscriber)
        self.tables.weigh(live_table)

    def unsubscribe(self, live_table: LiveTable, subscriber: object) -> None:
        """The opposite of `subscribe`; after the last one the table may leave memory."""
        live_table.subscribers.discard(subscriber)
        if not live_table.subscribers:
            self.recent.release(live_table.id)
        self.tables.weigh(live_table)

    async def open_table(
        self,
        rules: Mapping[str, Any],
        *,
        key: IdempotencyKey | None = None,
        address: str = "",
        owner: Owner | None = None,
    ) -> tuple[LiveTable, CommandResult]:
        """Open a table. An unguessable `cmd` that is sent again finds the table that it opened.

        `address` is the client's; only a keyed digest of its network is stored, for the lobby. The
        `owner` is recorded before the table begins; with a `ref` that it has used before, the table
        is that one, and `key` has to be the same.
        """
        rules = self._insecure_decks.rules_for(rules)
        check_rules(rules)
        table, key = await id_and_key(key, self.log, self._key, now=self.now())
        if owner is not None:
            table = await self.service_tables.claim(table, owner)
        live_table = self.tables.get(table.hex())
        if live_table is None:
            if owner is not None and key is not None:  # it may be a repetition, much later
                await require_here(self.log, table)
            live_table = await self.lifecycle.load_or_create(table)
        opening = OpenTable(
            self._executor.origin(table), self._key.public_key, for_new_table(rules)
        )
        # Held, because an idle table may leave memory before the caller has the answer.
        try:
            with live_table.held():
                done = await self.execute(live_table, opening, key=key)
        except DealerError:
            self.tables.discard_if_empty(live_table)
            raise
        self.openers.note(live_table.id, address)
        return live_table, done

    # Commands

    def submit(
        self,
        live_table: LiveTable,
        command: Command,
        done: OnResult,
        *,
        key: IdempotencyKey | None = None,
        expect: int | None = None,
    ) -> None:
        """Decide a command now; `done` is called once its events are on disk, or with the error.

        It is called exactly once, also with what goes wrong here: nothing is raised. A command
        whose table is past version `expect` is refused. So is one whose `key` was used with other
        content.
        """
        execution = CommandExecution(command=command, done=done, key=key, expect=expect)
        self.processor.submit(live_table, execution)

    async def execute(
        self,
        live_table: LiveTable,
        command: Command,
        *,
        key: IdempotencyKey | None = None,
        expect: int | None = None,
    ) -> CommandResult:
        """`submit`, awaited; raises the refusal."""
        future: asyncio.Future[CommandResult] = asyncio.get_running_loop().create_future()
        self.submit(live_table, command, resolve(future), key=key, expect=expect)
        return await future

    async def draw_at_random(
        self,
        live_table: LiveTable,
        command: DrawAtRandom,
        *,
        key: IdempotencyKey | None = None,
        expect: int | None = None,
    ) -> CommandResult:
        """Shuffle `command.count` cards to the top of `command.source`, then draw them."""
        draw = Draw(command.actor, command.count, command.source)
        execution = CommandExecution(command=command, key=key, expect=expect)
        return await self._draws.draw(live_table, execution, draw)

    # Reading

    async def bundle(
        self,
        live_table: LiveTable,
        *,
        size: int | None = None,
        writing: Callable[[], None] | None = None,
    ) -> AsyncGenerator[str]:
        """The lines, without newlines, that a verifier needs to check the table offline.

        They are of the first `size` events, for which there is a checkpoint, or of all on disk;
        then `writing` is as in `checkpoint`.
        """
        if size is None:
            size, _ = await self.checkpoint(live_table, writing=writing)
        extent = BundleRange(live_table.id, size, size)
        with self.damaged.noticed(live_table.table_id):
            async for line in bundle_lines(self.log, extent, chunk=DOWNLOAD_CHUNK):
                yield line
