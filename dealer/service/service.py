"""Service: the facade that the gateway and the command line use.

It takes commands and queries for any table of one event log, and notifies its listeners of what
became public.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dealer.errors import BadRequest, DealerError
from dealer.eventlog import Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.high_water_mark import HighWaterMark
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.recent import RecentEvents
from dealer.feed.feed import Feed
from dealer.game.commands import Command, OpenTable
from dealer.game.rules import PRACTICE, for_new_table
from dealer.game.state import Round
from dealer.projector.queries import FINISHED
from dealer.projector.scheduler import ProjectionScheduler
from dealer.service.clock import Clock, SteadyClock, utc_ms
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.commit_stats import CommitStats
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.maintenance import MaintenanceMode
from dealer.service.commands.processor import CommandProcessor
from dealer.service.commands.random_draws import RandomDraws
from dealer.service.identity.seat_claims import SeatClaims
from dealer.service.identity.service_keys import ServiceKeys
from dealer.service.identity.service_tables import Owner, ServiceJournal, ServiceTables
from dealer.service.identity.tokens import Tickets, TokenKeys
from dealer.service.nodes.head_poller import HeadPoller
from dealer.service.nodes.presence import SharedPresence
from dealer.service.reading.broadcasts import Broadcasts
from dealer.service.reading.bundle import DOWNLOAD_CHUNK, BundleRange, bundle_lines
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.reading.consistency import ConsistencyProofs
from dealer.service.reading.lobby import PER_NETWORK, Lobby, Openers
from dealer.service.reading.past_states import PastStates
from dealer.service.tables import execution as executions
from dealer.service.tables.archive import ArchiveFolder, require_here
from dealer.service.tables.cache import BYTES, TABLES, TableCache
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.insecure_decks import InsecureDecks
from dealer.service.tables.live_table import LiveTable, Notices
from dealer.service.tables.loading import Loader
from dealer.service.tables.round_secret_cache import RoundSecretCache
from dealer.service.tables.stored_savepoints import StoredSavepoints
from dealer.service.tables.table_ids import check_rules, id_and_key
from dealer.webhooks.runner import WebhookRunner

GIVE_UP_MS = 3 * 86_400_000
"""Milliseconds of failures after which a webhook is switched off, unless it is a setting."""


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """Settings of the parts of a service.

    `house` is the name of the house in origins, without space or `+`. Tables in memory take about
    `memory` bytes at most, and at most `tables` of them are idle. The lobby lists at most
    `per_network` tables that one network opened. Bundles of archived tables are read from the
    folder `archive`. A webhook that fails for `webhook_give_up_ms` is switched off, unless that is
    0. With `insecure_test_decks` a test may choose what shuffles give. `program` is what `dealer
    serve` notes of itself before a round, see `CommandExecutor`. `clock` is the wall clock,
    milliseconds since 1970.
    """

    house: str = "localhost"
    tables: int = TABLES
    memory: int = BYTES
    per_network: int = PER_NETWORK
    archive: Path | None = None
    webhook_give_up_ms: int = GIVE_UP_MS
    insecure_test_decks: bool = False
    program: str = ""
    clock: Clock = utc_ms


DEFAULTS = ServiceOptions()


class Service:
    """The tables of one event log: its parts, each made of those before it, and what they do only
    together.

    Nothing of it runs yet: `build.open_service` starts it. `mark` is the log's high-water mark, if
    one is kept. `hints` is None if other processes get no notifications of commits.
    """

    def __init__(
        self,
        log: Log,
        keys: HouseKeys,
        options: ServiceOptions = DEFAULTS,
        *,
        mark: HighWaterMark | None = None,
        maintenance: MaintenanceMode | None = None,
    ) -> None:
        self.log = log
        self.keys = keys
        self.now = options.clock
        self.stats = CommitStats()
        self.tasks = BackgroundTasks()
        self.damaged = DamagedTables()
        self.recent = recent = RecentEvents(bound=options.memory // 4)
        self.service_keys = ServiceKeys()
        self.feed = Feed(log, recent, self.damaged, enabled=self.service_keys.any_reads)
        self.notices = Notices(recent, self.feed.subjects)
        # Tables in memory.
        self.insecure_decks = decks = InsecureDecks(allowed=options.insecure_test_decks)
        secrets_of_rounds = RoundSecretCache(log, keys)
        self.reader = EventReader(log, recent, secrets_of_rounds, self.damaged)
        self.savepoints = StoredSavepoints(log, keys, secrets_of_rounds)
        self.loader = Loader(
            log, secrets_of_rounds, self.reader, self.savepoints, decks, self.damaged
        )
        self.projection = ProjectionScheduler(log, recent)
        self.tables = TableCache(self.loader, recent, self.projection.projector)
        self.tables.bound, self.tables.bytes_bound = options.tables, options.memory
        self.archive = ArchiveFolder(options.archive)
        # Commands.
        self.maintenance = maintenance or MaintenanceMode()
        self.executor = CommandExecutor(
            keys,
            house=options.house,
            maintenance=self.maintenance,
            cache=self.tables,
            insecure_decks=decks,
            program=options.program,
            clock=options.clock,
        )
        self.processor = CommandProcessor(
            log,
            keys,
            self.loader,
            self.reader,
            self.executor,
            self.tables,
            recent,
            self.savepoints,
            self.notices,
            self.tasks,
            mark,
        )
        self.lifecycle = self.processor.lifecycle
        self.random_draws = RandomDraws(self.processor, self.reader, self.tasks)
        # Who may act.
        self.tokens = TokenKeys(keys)
        self.tickets = Tickets(keys, self.service_keys, options.clock)
        self.seat_claims = SeatClaims(log, keys, self.processor)
        self.service_tables = ServiceTables(log)
        self.service_journal = ServiceJournal(log)
        # What is read of tables.
        self.checkpoints = Checkpoints(log, self.lifecycle, self.executor, self.tasks, self.notices)
        self.consistency = ConsistencyProofs(log, self.damaged)
        self.past_states = PastStates(log, secrets_of_rounds, self.damaged)
        self.broadcasts = Broadcasts(
            log,
            self.lifecycle,
            self.reader,
            self.checkpoints,
            self.notices,
            self.service_keys,
            self.tokens,
            SteadyClock(options.clock),
        )
        self.openers = Openers(log, keys)
        self.lobby = Lobby(log, self.openers, per_network=options.per_network)
        self.finished = Lobby(log, self.openers, per_network=options.per_network, listed=FINISHED)
        # After the commit: other nodes, other servers.
        self.presence = SharedPresence(log)
        self.head_poller = HeadPoller(
            log, self.tables, self.lifecycle, self.checkpoints, self.presence
        )
        self.hints = log.reader.notifier(self.head_poller.on_hint)
        self.webhooks = WebhookRunner(
            log,
            self.feed,
            keys,
            self.service_keys.filter_of,
            house=options.house,
            random=secrets.token_bytes,
            now=options.clock,
            give_up_ms=options.webhook_give_up_ms,
        )

    async def close(self) -> None:
        """Stop all work on tables; the log is the caller's to close."""
        await self.service_journal.close()
        self.lifecycle.close()
        self.processor.close()
        await self.tasks.close()
        await self.presence.close()

    # Tables

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
        if not live_table.subscribers and live_table.source is None:
            self.recent.release(live_table.id)
        self.tables.weigh(live_table)

    async def was_opened(self, key: executions.IdempotencyKey | None) -> bool:
        """Whether `open_table` has opened a table with this key, by which alone it finds it."""
        table, _ = await id_and_key(key, self.log, self.keys, now=self.now())
        return key is not None and await self.log.head(table) is not None

    async def open_table(
        self,
        rules: Mapping[str, Any],
        *,
        key: executions.IdempotencyKey | None = None,
        address: str = "",
        owner: Owner | None = None,
        laid_out: Round | None = None,
    ) -> tuple[LiveTable, executions.CommandResult]:
        """Open a table. An unguessable `cmd` that is sent again finds the table that it opened.

        `address` is the client's; only a keyed digest of its network is stored, for the lobby. The
        `owner` is recorded before the table begins; with a `ref` that it has used before, the table
        is that one, and `key` has to be the same. With `laid_out` it is a practice table: round and
        rules are those of `PastStates.practice`.
        """
        if laid_out is None and PRACTICE in rules:
            raise BadRequest(
                f"The rule {PRACTICE} is the server's: open a practice table with `from`, the "
                "round to play on from."
            )
        rules = self.insecure_decks.rules_for(rules)
        check_rules(rules)
        table, key = await id_and_key(key, self.log, self.keys, now=self.now())
        if owner is not None:
            table = await self.service_tables.claim(table, owner)
        live_table = self.tables.get(table.hex())
        if live_table is None:
            if owner is not None and key is not None:  # it may be a repetition, much later
                await require_here(self.log, table)
            live_table = await self.lifecycle.load_or_create(table)
        opening = OpenTable(
            self.executor.origin(table), self.keys.public_key, for_new_table(rules), laid_out
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

    def submit(self, live_table: LiveTable, command: Command, done: executions.OnResult) -> None:
        """Decide a command now; `done` is called once its events are on disk, or with the error.

        It is called exactly once, also with what goes wrong here: nothing is raised.
        """
        self.processor.submit(live_table, executions.CommandExecution(command=command, done=done))

    async def execute(
        self,
        live_table: LiveTable,
        command: Command,
        *,
        key: executions.IdempotencyKey | None = None,
        expect: int | None = None,
    ) -> executions.CommandResult:
        """`submit`, awaited; raises the refusal.

        A command whose table is past version `expect` is refused. So is one whose `key` was used
        with other content.
        """
        execution = executions.CommandExecution(command=command, key=key, expect=expect)
        return await self.processor.execute(live_table, execution)

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
        then `writing` is as in `Checkpoints.checkpoint`.
        """
        if size is None:
            size, _ = await self.checkpoints.checkpoint(live_table, writing=writing)
        extent = BundleRange(live_table.id, size, size)
        with self.damaged.noticed(live_table.table_id):
            async for line in bundle_lines(self.log, extent, chunk=DOWNLOAD_CHUNK):
                yield line
