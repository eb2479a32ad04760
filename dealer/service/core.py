"""The service: everything that may be asked of the house, whoever asks.

The gateway hands it commands and gets their answers, and through `publish` what became public.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from hmac import digest as hmac_digest
from pathlib import Path
from typing import Any

from dealer.errors import BadRequest, DatabaseError, DealerError, NotCanonical, RaceLost
from dealer.eventlog import Conflict, Log
from dealer.eventlog.sealing import HouseKeys
from dealer.game.commands import Actor, Command, Draw, DrawAtRandom, OpenTable
from dealer.game.rules import Rules
from dealer.game.view import SPECTATOR, Viewer, sits
from dealer.game.view import snapshot as view_of
from dealer.proof import canonical
from dealer.proof.pack import T, lp
from dealer.service import archived
from dealer.service.archive import Archive
from dealer.service.archived import Shelf
from dealer.service.closures import Closures
from dealer.service.counts import Counts
from dealer.service.desk import Desk
from dealer.service.draws import Draws
from dealer.service.judge import Judge
from dealer.service.lobby import Lobby
from dealer.service.memory import Memory
from dealer.service.record import Entry
from dealer.service.requests import Answer, Done, Request, settling
from dealer.service.resident import Resident
from dealer.service.snapshots import Published, Snapshot
from dealer.service.tokens import Tokens

LOOK_SECONDS = 1.0
"""How often the heads of the tables in use are compared with the log's."""

UNGUESSABLE = 22
"""Characters from which on an id that opens a table is a secret, and so may be remembered."""

NEW = "new"
"""The scope of command ids whose callers are nobody yet; only unguessable ones are kept in it."""


class Service:
    """The tables of one house over one log.

    `house` is the house's name in origins, without space or `+`. At most `tables` stay in memory
    beside those that somebody listens to, and bundles of archived ones are read out of the folder
    `archive`. `publish` is the gateway's: it is called on the loop
    after each commit, in the order of a table's versions.
    """

    def __init__(
        self,
        log: Log,
        key: HouseKeys,
        *,
        house: str = "localhost",
        tables: int = 10_000,
        archive: Path | None = None,
    ) -> None:
        self.publish: Callable[[Resident, Published], None] = lambda resident, news: None
        self.counts = Counts()
        self.closures = Closures()
        self.shelf = Shelf(archive)
        self._tokens: dict[bytes, Tokens] = {}
        self.log = log
        self._key = key
        self._house = house
        self._hint = asyncio.Event()
        self._hinted: set[bytes] = set()
        self.lobby = Lobby(log)
        self.archive = Archive(log, key)
        self.memory = Memory(self.archive, bound=tables)
        self._judge = Judge(key, house=house, closures=self.closures)
        self._desk = Desk(log, self.archive, self._judge, self._tell)
        self._draws = Draws(self._desk, self.archive)

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
        """Let go of the tables; the log is its owner's to close."""
        for resident in self.memory:
            if resident.timer is not None:
                resident.timer.cancel()
        await self._desk.close()

    def now(self) -> int:
        """The house's clock: milliseconds since 1970, UTC."""
        return self._judge.now()

    def _tell(self, resident: Resident, news: Published) -> None:
        self.publish(resident, news)

    # Tables

    def resident(self, table: str) -> Resident | None:
        """The table, if it is in memory."""
        return self.memory.get(table)

    async def load(self, table: str) -> Resident:
        """The table, from memory or from the log; UnknownTable if there is none.

        Who comes in may have been at another process before: the table is not behind that.
        """
        resident = self.memory.get(table)
        if resident is None:
            resident = await self.memory.load(table)
            self._desk.arm(resident)
        # Also what was loaded just now: others may have begun that before this one came.
        await self.catch_up(resident)
        if not resident.committed:
            return await self.memory.load(table)  # which says so, where the log was put back so far
        if resident.table.closed:
            await archived.require_here(self.log, resident.id)
        return self.memory.keep(resident)

    async def catch_up(self, resident: Resident) -> None:
        """Take in what other processes have written to this table by now."""
        await self._desk.catch_up(resident)

    def hinted(self, tables: set[bytes]) -> None:
        """Another process may have written to these tables: look at those in use, and soon."""
        self._hinted |= tables
        self._hint.set()

    async def look_around(self) -> None:
        """Take in what other processes write to tables that somebody here listens to; for ever.

        Every table in use is looked at once a second, a hinted one at once.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._hint.wait()
            self._hint.clear()
            hinted, self._hinted = self._hinted, set()
            followed = [resident for resident in self.memory if resident.sessions]
            if loop.time() < due:
                followed = [resident for resident in followed if resident.id in hinted]
            else:
                due = loop.time() + LOOK_SECONDS
            try:
                await self._look_at(followed)
            except DatabaseError:
                continue
            except Exception as error:
                loop.call_exception_handler(
                    {"message": "looking at other processes' work failed", "exception": error}
                )

    async def _look_at(self, followed: list[Resident]) -> None:
        if not followed:
            return
        believed = [(resident, resident.committed) for resident in followed]
        heads = await self.log.heads(resident.id for resident in followed)
        for resident, committed in believed:
            if not committed <= heads.get(resident.id, 0) <= resident.committed:
                # Of a table that cannot be read its own guests are told; the others go on.
                with suppress(DealerError):
                    await self.catch_up(resident)

    async def open_table(
        self, rules: Mapping[str, Any], *, cmd: str | None = None, content: bytes = b""
    ) -> tuple[Resident, Done]:
        """A new table. An unguessable `cmd` sent again finds the table that it opened."""
        Rules.check(rules)
        _check_canonical(rules)
        if cmd is not None and len(cmd) >= UNGUESSABLE:
            table = await self._opened_by(cmd)
        else:
            table = self._judge.now().to_bytes(6, "big") + secrets.token_bytes(10)
            cmd = None
        resident = self.memory.get(table.hex()) or await self.memory.found(table)
        opening = OpenTable(self._judge.origin(table), self._judge.public_key, rules)
        try:
            done = await self.call(resident, opening, cmd=cmd, scope=NEW, content=content)
        except DealerError:
            self.memory.forget_if_empty(resident)
            raise
        return resident, done

    async def _opened_by(self, cmd: str) -> bytes:
        """The id of the table that this command opens, or has opened under an earlier key."""
        ids = [
            hmac_digest(one.token_key, T("open") + lp(cmd.encode()), "sha256")[:16]
            for one in (self._key, *self._key.earlier)
        ]
        there = await self.log.heads(ids) if len(ids) > 1 else {}
        return next((table for table in ids if table in there), ids[0])

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
        return await self.archive.entries(resident, after=after, limit=limit)

    async def consistency(self, resident: Resident, old: int, new: int) -> list[str]:
        """RFC 6962's proof that the first `old` leaves never changed, as hex."""
        return await self.archive.consistency(resident, old=old, new=new)

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
        """The table as `viewer` may know it, at a version that is on disk.

        Who has no longer the seat that they look from sees what a spectator sees.
        """
        while True:
            version = resident.table.version
            if not sits(resident.table, viewer):
                viewer = SPECTATOR
            state = view_of(resident.table, viewer)
            for card in state.get("round", {}).get("cards", ()):
                card.append(resident.secret.slot_salt(card[0]).hex())
            edge, root = [node.hex() for node in resident.tree.edge], resident.tree.root()
            if await self._desk.on_disk(resident, version):
                note = self._judge.sign(resident, version, root)
                return Snapshot(version, state, edge, note)

    async def checkpoint(self, resident: Resident) -> tuple[int, str]:
        """(size, note) of a kept checkpoint over all that is on disk; a new one if need be."""
        while True:
            version, root = resident.table.version, resident.tree.root()
            if not await self._desk.on_disk(resident, version):
                continue
            newest = await self.log.newest_checkpoint(resident.id)
            if newest is None or newest[0] < version:
                break
            if newest[0] == version:
                return newest
            await self.catch_up(resident)
        note = self._judge.sign(resident, version, root)
        await self._put_note(resident, version, note)
        return version, note

    async def bundle(self, resident: Resident) -> AsyncGenerator[str]:
        """The lines, without newlines, of what anybody needs to verify the table offline."""
        size, _ = await self.checkpoint(resident)
        async for line in self.archive.bundle(resident, upto=size):
            yield line

    async def cosign(self, resident: Resident, line: str) -> tuple[int, str]:
        """Attach a player's signature line to the checkpoint that it signs; (size, whole note).

        Raises BadRequest if it is no seated player's signature of one of the latest checkpoints.
        """
        size, note = await self.archive.cosigned(resident, line)
        await self._put_note(resident, size, note)
        self.publish(resident, Published([], [(size, note)]))
        return size, note

    async def _put_note(self, resident: Resident, size: int, note: str) -> None:
        """Keep a checkpoint; TableArchived if its table was put away in this very moment."""
        if isinstance(await self.log.put_note(resident.id, size, note), Conflict):
            await archived.require_here(self.log, resident.id)
            await self.catch_up(resident)
            raise RaceLost("The log was put back to an older state; look at the table again.")


def _check_canonical(rules: Mapping[str, Any]) -> None:
    """Raise BadRequest for rules that no leaf may hold: nobody could ever verify that table."""
    try:
        canonical.encode({"public": {"rules": rules}})  # as deep as they will stand in the leaf
    except NotCanonical as error:
        raise BadRequest(f"The rules cannot be written down: {error}") from None
