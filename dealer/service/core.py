"""The service: everything that may be asked of the house, whoever asks.

The gateway hands it commands and gets their answers, and through `publish` what became public.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.eventlog.mark import Mark
from dealer.eventlog.sealing import HouseKeys
from dealer.game.commands import Actor, Command, Draw, DrawAtRandom, OpenTable
from dealer.game.rules import for_new_table
from dealer.game.view import Viewer
from dealer.service import archived
from dealer.service.archived import Shelf
from dealer.service.clock import Clock, utc_ms
from dealer.service.closures import Closures
from dealer.service.counts import Counts
from dealer.service.desk import Desk
from dealer.service.draws import Draws
from dealer.service.founding import NEW, UNGUESSABLE, check_rules, new_id, opened_by
from dealer.service.judge import Judge
from dealer.service.keyring import Keyring
from dealer.service.loading import Loader
from dealer.service.lobby import PER_NETWORK, Lobby
from dealer.service.lookout import Lookout
from dealer.service.memory import BYTES, TABLES, Memory
from dealer.service.opener import Openers
from dealer.service.past import Past, Pause, no_pause
from dealer.service.presence import SharedPresence
from dealer.service.record import Entry
from dealer.service.requests import Answer, Done, Request, settling
from dealer.service.resident import Resident
from dealer.service.signing import Signing
from dealer.service.snapshots import Published, Snapshot
from dealer.service.tokens import Tokens
from dealer.service.wakeups import Wakeups


class Service:
    """The tables of one house over one log.

    `house` is the house's name in origins, without space or `+`. Tables in memory take about
    `memory` bytes at most, and at most `tables` of them are not in use; the lobby lists at most
    `per_network` of those that one network opened; bundles of archived ones are read out of the
    folder `archive`. `publish` is the gateway's: it is called on the loop for each commit, this
    process's or another's, in the order of a table's versions, for cosignatures, and where the log
    went back. `clock` is the wall clock, milliseconds since 1970.
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
        clock: Clock = utc_ms,
    ) -> None:
        self.publish: Callable[[Resident, Published], None] = lambda resident, news: None
        self.counts = Counts()
        self.closures = Closures()
        self.shelf = Shelf(archive)
        self._tokens: dict[bytes, Tokens] = {}
        self._mark: Mark | None = None
        self.log = log
        self._key = key
        self._house = house
        self.openers = Openers(log, key)
        self.lobby = Lobby(log, self.openers, per_network=per_network)
        keyring = Keyring(log, key)
        self.past = Past(log, keyring)
        self.loader = Loader(log, keyring, self.past)
        self.memory = Memory(self.loader, bound=tables, bytes_bound=memory, leave=self._leave)
        self.wakeups = Wakeups(self._wake)
        self.memory.elsewhere = lambda: self.wakeups.size
        self._judge = Judge(
            key, house=house, closures=self.closures, memory=self.memory, clock=clock
        )
        self._desk = Desk(log, self.loader, self.past, self._judge, self.memory, self._tell)
        self.signing = Signing(log, self._desk, self._judge, self._tell)
        self.presence = SharedPresence(log)
        self.lookout = Lookout(log, self.memory, self._desk, self.signing, self.presence)
        self._draws = Draws(self._desk, self.past)

    @property
    def public_key(self) -> bytes:
        """The Ed25519 key, 32 bytes, that every new table of this house is signed under."""
        return self._judge.public_key

    def tokens_of(self, key: bytes) -> Tokens:
        """The tokens of tables that are signed under this key; raises HouseKeyError."""
        if key not in self._tokens:
            under = self._key.of(key)
            tokens = self._tokens.get(under.public_key) or Tokens(under.token_key)
            self._tokens[key] = self._tokens[under.public_key] = tokens
        return self._tokens[key]

    async def close(self) -> None:
        """Release the tables; the log is its owner's to close."""
        await self.wakeups.close()
        for resident in self.memory:
            self._desk.deadlines.disarm(resident)
        await self._desk.close()
        await self.presence.close()

    def now(self) -> int:
        """The house's clock: milliseconds since 1970, UTC."""
        return self._judge.now()

    def keep(self, mark: Mark) -> None:
        """Put down in `mark` from now on what is committed here, or shown of other processes."""
        self._mark = mark
        self._desk.read_elsewhere = self._put_down
        self.log.written = mark.wrote

    def _put_down(self, resident: Resident, *, old: bool = False) -> None:
        if self._mark is not None:
            at = resident.table.at
            self._mark.saw(resident.id, resident.committed, resident.leaf, at=at, old=old)

    def _tell(self, resident: Resident, news: Published) -> None:
        self.publish(resident, news)

    # Tables

    def resident(self, table: str) -> Resident | None:
        """The table, if it is in memory."""
        return self.memory.get(table)

    async def load(self, table: str) -> Resident:
        """The table, from memory or from the log; UnknownTable if there is none.

        The table has every event that another process had committed by now. Raises Overloaded
        where it is not in memory and the tables in use leave no room for it.
        """
        resident = self.memory.get(table)
        if resident is None:
            self.memory.require_room()
            resident = await self._into_memory(table)
        # Also what was loaded just now: others may have begun that before this one came.
        await self.catch_up(resident)
        if not resident.committed:
            return await self.memory.load(table)  # which says so, where the log was put back so far
        if resident.table.closed:
            await archived.require_here(self.log, resident.id)
        return self.memory.keep(resident)

    async def _into_memory(self, table: str) -> Resident:
        resident = await self.memory.load(table)
        self._take_in(resident)
        self._put_down(resident, old=True)
        return resident

    def _take_in(self, resident: Resident) -> None:
        """The table is in memory again: its shuffle, if one waits, has a timer of its own."""
        self.wakeups.forget(resident.table_id)
        self._desk.deadlines.arm(resident)

    def _leave(self, resident: Resident) -> bool:
        """Whether the table may leave memory now; if so, its shuffle's deadline stays known."""
        if not self.wakeups.sleep(resident):
            return False
        self._desk.put_off_draw(resident)
        return True

    async def _wake(self, table: str) -> None:
        """Bring a table into memory whose deadline has come, whatever room there is."""
        if self.memory.get(table) is None:
            await self.catch_up(await self._into_memory(table))

    def subscribe(self, resident: Resident, subscriber: object) -> None:
        """Keep the table in memory until `unsubscribe`; its events are of interest here."""
        resident.sessions.add(subscriber)
        self.memory.weigh(resident)

    def unsubscribe(self, resident: Resident, subscriber: object) -> None:
        """The opposite of `subscribe`; where it was the last one, the table may leave."""
        resident.sessions.discard(subscriber)
        if not resident.sessions:
            resident.ring.clear()
        self.memory.weigh(resident)

    async def catch_up(self, resident: Resident) -> None:
        """Take in what other processes have written to this table by now."""
        await self._desk.catch_up(resident)

    async def open_table(
        self,
        rules: Mapping[str, Any],
        *,
        cmd: str | None = None,
        content: bytes = b"",
        address: str = "",
    ) -> tuple[Resident, Done]:
        """A new table. An unguessable `cmd` sent again finds the table that it opened.

        `address` is the client's; it is not kept, only a digest of its network is, for the lobby.
        """
        check_rules(rules)
        if cmd is not None and len(cmd) >= UNGUESSABLE:
            table = await opened_by(cmd, self.log, self._key)
        else:
            table = new_id(self._judge.now())
            cmd = None
        resident = self.memory.get(table.hex())
        if resident is None:
            self.memory.require_room()
            resident = await self.memory.found(table)
            self._take_in(resident)
        opening = OpenTable(self._judge.origin(table), self._judge.public_key, for_new_table(rules))
        # Once it is on disk nothing keeps it in memory until the caller has the answer.
        try:
            with resident.held():
                done = await self.call(resident, opening, cmd=cmd, scope=NEW, content=content)
        except DealerError:
            self.memory.forget_if_empty(resident)
            raise
        self.openers.note(resident.id, address)
        return resident, done

    # Commands

    def perform(
        self,
        resident: Resident,
        command: Command,
        *,
        cmd: str | None = None,
        scope: str = "",
        content: bytes = b"",
        expect: int | None = None,
        done: Answer,
    ) -> None:
        """Judge a command now; `done` is told once what it brought about is on disk, or why not.

        `scope` is the caller's role and `content` the canonical bytes of method and parameters:
        the same `cmd` of the same role with other content is refused, and so is a command whose
        table is past `expect`, the version that it was decided on.
        """
        request = self._request(resident, command, cmd=cmd, scope=scope, content=content, done=done)
        request.expect = expect
        self._desk.submit(resident, request)

    def _request(
        self,
        resident: Resident,
        command: Command,
        *,
        cmd: str | None,
        scope: str,
        content: bytes,
        done: Answer,
    ) -> Request:
        if cmd is None:
            return Request(command, done)
        key = self._key.of(resident.table.key)
        if scope == NEW:
            # Sent again it is answered with a token: who reads the database must not learn it.
            cmd = key.command_digest(b"cmd " + cmd.encode()).hex()
        return Request(command, done, f"{scope}/{cmd}", key.command_digest(content))

    async def call(
        self,
        resident: Resident,
        command: Command,
        *,
        cmd: str | None = None,
        scope: str = "",
        content: bytes = b"",
        expect: int | None = None,
    ) -> Done:
        """`perform`, awaited; raises what it refuses."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        answer = settling(future)
        self.perform(
            resident,
            command,
            cmd=cmd,
            scope=scope,
            content=content,
            expect=expect,
            done=answer,
        )
        return await future

    # Reading

    async def entries(
        self, resident: Resident, after: int, limit: int | None = None
    ) -> list[Entry]:
        """At most `limit` events that are on disk, after version `after`."""
        return await self.past.entries(resident, after=after, limit=limit)

    async def consistency(
        self, resident: Resident, old: int, new: int, *, pause: Pause = no_pause
    ) -> list[str]:
        """RFC 6962's proof that the first `old` leaves never changed, as hex.

        `pause` is awaited between the slices in which the leaves are read and hashed.
        """
        return await self.past.consistency(resident, old=old, new=new, pause=pause)

    # Drawing from anywhere

    async def draw_at_random(
        self,
        resident: Resident,
        actor: Actor,
        *,
        count: int,
        source: str,
        cmd: str | None = None,
        scope: str = "",
        content: bytes = b"",
        expect: int | None = None,
    ) -> Done:
        """Shuffle as many cards to the top as are wanted, then draw them."""
        request = self._request(
            resident,
            DrawAtRandom(actor, count, source),
            cmd=cmd,
            scope=scope,
            content=content,
            done=lambda _: None,
        )
        request.expect = expect
        return await self._draws.draw(resident, request, Draw(actor, count, source))

    # What a table looks like

    async def snapshot(self, resident: Resident, viewer: Viewer) -> Snapshot:
        """The table as `viewer` may know it, at a version that is on disk."""
        return await self.signing.snapshot(resident, viewer)

    async def checkpoint(
        self, resident: Resident, *, writing: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """(size, note) of a kept checkpoint over all that is on disk; a new one if need be.

        `writing` is called before a new one is written, and may refuse that by raising.
        """
        return await self.signing.checkpoint(resident, writing=writing)

    async def bundle(
        self, resident: Resident, *, writing: Callable[[], None] | None = None
    ) -> AsyncGenerator[str]:
        """The lines, without newlines, of what anybody needs to verify the table offline.

        `writing` is as in `checkpoint`.
        """
        size, _ = await self.checkpoint(resident, writing=writing)
        async for line in self.past.bundle(resident, upto=size):
            yield line

    async def cosign(self, resident: Resident, line: str) -> tuple[int, str]:
        """Attach a player's signature line to the checkpoint that it signs; (size, whole note).

        Raises BadRequest if it is no seated player's signature of one of the latest checkpoints.
        """
        return await self.signing.cosign(resident, line)
