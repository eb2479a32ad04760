"""The service: it judges commands in the order they come, and tells only what is on disk.

A command is judged at once against the state in memory, its events go to the log's writer, and
when the batch that they are in has been committed, `publish` gets them and the caller its answer,
in the order of versions. Should the log refuse, because another process was quicker, the table is
loaded afresh and the command judged again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from hmac import digest as hmac_digest
from typing import Any

from dealer.errors import (
    CommandReused,
    Conflicted,
    DealerError,
    NoRound,
    Refused,
    Unavailable,
)
from dealer.eventlog import Append, Appended, Known, Log, Result
from dealer.eventlog.sealing import House
from dealer.game.commands import Actor, Command, Draw, DrawAtRandom, OpenTable, PassTime
from dealer.game.decide.shuffles import deadline
from dealer.game.events import CardDrawn, ShuffleStarted
from dealer.game.rules import Rules
from dealer.game.view import Viewer
from dealer.game.view import snapshot as view_of
from dealer.projector.lobby import LOBBY
from dealer.proof.pack import T, lp
from dealer.service.archive import Archive
from dealer.service.judge import Flight, Judge
from dealer.service.memory import Memory
from dealer.service.record import Entry
from dealer.service.requests import Answer, Done, Outcome, PendingDraw, Remembered, Request
from dealer.service.resident import Resident
from dealer.service.snapshots import Published, Snapshot
from dealer.service.tokens import Tokens

ATTEMPTS = 8
"""How often a command is judged again while other processes keep being quicker."""

UNGUESSABLE = 22
"""Characters from which on an id that opens a table is a secret, and so may be remembered."""

RETRY_SECONDS = 0.5
"""How long a table whose log cannot be read waits before it tries again."""


class Service:
    """The tables of one house over one log.

    `house` is the house's name in origins, without space or `+`. At most `tables` stay in memory
    beside those that somebody listens to. `publish` is the gateway's: it is called on the loop
    after each commit, in the order of a table's versions.
    """

    def __init__(
        self, log: Log, key: House, *, house: str = "localhost", tables: int = 10_000
    ) -> None:
        self.publish: Callable[[Resident, Published], None] = lambda resident, news: None
        self.tokens = Tokens(key.token_key)
        self.log = log
        self._key = key
        self._house = house
        self.archive = Archive(log, key)
        self.memory = Memory(self.archive, bound=tables)
        self._judge = Judge(key, house=house)
        self._tasks: set[asyncio.Task[Any]] = set()
        log.committed = self._committed

    @property
    def public_key(self) -> bytes:
        """The Ed25519 key, 32 bytes, that every table of this house is signed under."""
        return self._judge.public_key

    async def close(self) -> None:
        """Let go of the tables; the log is its owner's to close."""
        for resident in self.memory:
            if resident.timer is not None:
                resident.timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Tables

    def resident(self, table: str) -> Resident | None:
        """The table, if it is in memory."""
        return self.memory.get(table)

    async def load(self, table: str) -> Resident:
        """The table, from memory or from the log; UnknownTable if there is none."""
        resident = self.memory.get(table)
        if resident is None:
            resident = await self.memory.load(table)
            self._arm(resident)
        return resident

    async def open_table(
        self, rules: Mapping[str, Any], *, cmd: str | None = None, content: bytes = b""
    ) -> tuple[Resident, Done]:
        """A new table. An unguessable `cmd` sent again finds the table that it opened."""
        Rules.check(rules)
        if cmd is not None and len(cmd) >= UNGUESSABLE:
            table = hmac_digest(self._key.token_key, T("open") + lp(cmd.encode()), "sha256")[:16]
        else:
            table = self._judge.now().to_bytes(6, "big") + secrets.token_bytes(10)
            cmd = None
        resident = self.memory.get(table.hex()) or await self.memory.found(table)
        opening = OpenTable(self._judge.origin(table), self._judge.public_key, rules)
        try:
            done = await self.call(resident, opening, cmd=cmd, scope="new", content=content)
        except DealerError:
            self.memory.forget_if_empty(resident)
            raise
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
        done: Answer,
    ) -> None:
        """Judge a command now; `done` is told once what it brought about is on disk, or why not.

        `scope` is the caller's role and `content` the canonical bytes of method and parameters:
        the same `cmd` of the same role with other content is refused.
        """
        request = self.request(command, cmd=cmd, scope=scope, content=content, done=done)
        self.submit(resident, request)

    def request(
        self,
        command: Command,
        *,
        cmd: str | None,
        scope: str,
        content: bytes,
        done: Answer,
    ) -> Request:
        if cmd is None:
            return Request(command, done)
        return Request(command, done, f"{scope}/{cmd}", self._key.command_digest(content))

    async def call(
        self,
        resident: Resident,
        command: Command,
        *,
        cmd: str | None = None,
        scope: str = "",
        content: bytes = b"",
    ) -> Done:
        """`perform`, awaited; raises what it refuses."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        answer = settling(future)
        self.perform(resident, command, cmd=cmd, scope=scope, content=content, done=answer)
        return await future

    def submit(self, resident: Resident, request: Request) -> None:
        if resident.reloading:
            resident.failed.append(request)
            return
        known = resident.recent.get(request.name) if request.name is not None else None
        if known is not None:
            self._answer_again(resident, request, known)
            return
        try:
            append = self._judge.decide(resident, request)
        except Refused as refusal:
            request.done(refusal)
            return
        if append is None:
            version = resident.table.version
            resident.when_committed(version, lambda _: request.done(Done(version, [])))
            return
        resident.in_flight += 1
        try:
            self.log.submit(append)
        except DealerError as error:
            self._committed([(append, error)])
            return
        if resident.table.round is not None or resident.timer is not None:
            self._arm(resident)

    # After a commit, on the loop

    def _committed(self, batch: Sequence[tuple[Append, Result | DealerError]]) -> None:
        for append, result in batch:
            if not isinstance(append.tag, Flight):
                continue
            flight = append.tag
            flight.resident.in_flight -= 1
            if isinstance(result, Appended):
                self._succeeded(flight)
            else:
                self._failed(flight, result)

    def _succeeded(self, flight: Flight) -> None:
        resident, request = flight.resident, flight.request
        resident.committed = flight.last
        resident.ring.extend(flight.recorded.entries)
        self.publish(resident, Published(flight.recorded.entries, flight.recorded.notes))
        done = Done(flight.last, flight.events)
        request.done(done)
        if flight.remembered is not None:
            flight.remembered.committed = True
            for again in flight.remembered.also:
                self._answer_again(resident, again, flight.remembered, done)
            flight.remembered.also.clear()
        if flight.drawn is not None:
            for answer in flight.drawn.answers:
                answer(flight.drawn_outcome())
        resident.tell_waiting()

    def _failed(self, flight: Flight, result: Result | DealerError) -> None:
        """Nothing of the flight was written, and the state in memory is ahead of the truth."""
        resident, request = flight.resident, flight.request
        resident.reloading = True
        if flight.drawn is not None:
            resident.pending_draw = flight.drawn
        if isinstance(result, DealerError):
            request.done(_unavailable(result))
        else:
            if isinstance(result, Known) and result.digest is not None:
                request.known = Remembered.read(result.version, result.digest)
            request.attempts += 1
            resident.failed.append(request)
        if flight.remembered is not None:
            resident.failed.extend(flight.remembered.also)
        if resident.in_flight == 0:
            self._keep(self._reload(resident))

    async def _reload(self, resident: Resident) -> None:
        while True:
            try:
                fresh = await self.archive.load(resident.id)
                missed = await self.archive.entries(fresh, after=resident.committed)
                break
            except DealerError as error:
                failed, resident.failed = resident.failed, []
                for request in failed:
                    request.done(_unavailable(error))
                await asyncio.sleep(RETRY_SECONDS)
        resident.replace_with(fresh)
        resident.committed = fresh.committed
        if missed:
            self.publish(resident, Published(missed, []))
        resident.tell_waiting()
        resident.reloading = False
        failed, resident.failed = resident.failed, []
        for request in failed:
            if request.known is not None:
                self._answer_again(resident, request, request.known)
            elif request.attempts >= ATTEMPTS:
                request.done(Conflicted("The table moved on each time; look at it and try again."))
            else:
                self.submit(resident, request)
        self._arm(resident)

    def _answer_again(
        self,
        resident: Resident,
        request: Request,
        known: Remembered,
        done: Done | None = None,
    ) -> None:
        request.again = True
        if known.digest != request.digest:
            request.done(
                CommandReused("This command id was used for something else; give each its own id.")
            )
        elif not known.committed:
            known.also.append(request)
        elif done is not None:
            request.done(done)
        else:
            self._keep(self._recall(resident, request, known))

    async def _recall(self, resident: Resident, request: Request, known: Remembered) -> None:
        outcome: Outcome
        try:
            events = await self.archive.events(resident, after=known.version - 1, count=known.count)
            outcome = Done(known.version + known.count - 1, events)
        except DealerError as error:
            outcome = _unavailable(error)
        request.done(outcome)

    # Reading

    async def entries(
        self, resident: Resident, after: int, limit: int | None = None
    ) -> list[Entry]:
        """At most `limit` events that are on disk, after version `after`."""
        return await self.archive.entries(resident, after=after, limit=limit)

    async def consistency(self, resident: Resident, old: int, new: int) -> list[str]:
        """RFC 6962's proof that the first `old` leaves never changed, as hex."""
        return await self.archive.consistency(resident, old=old, new=new)

    async def tables(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Open tables for the lobby, the newest first, as the read models have them."""
        return [dict(row._mapping) for row in await self.log.fetch(LOBBY, (limit,))]

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
    ) -> Done:
        """Shuffle as many cards to the top as are wanted, then draw them.

        Where players bring entropy the draw waits in memory and happens in the seal's own append.
        Should the house be restarted meanwhile, the command, sent again, finds where it was.
        """
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        settle = settling(future)
        draw = Draw(actor, count, source)

        def started(outcome: Outcome) -> None:
            if not isinstance(outcome, Done):
                settle(outcome)
            elif drawn := [event for event in outcome.events if isinstance(event, CardDrawn)]:
                settle(Done(outcome.version, list(drawn)))
            elif request.again:
                self._keep(self._resume_draw(resident, draw, outcome, cmd, scope, content, settle))

        shuffle = DrawAtRandom(actor, count, source)
        request = self.request(shuffle, cmd=cmd, scope=scope, content=content, done=started)
        request.then, request.drawn = draw, settle
        self.submit(resident, request)
        return await future

    async def _resume_draw(
        self,
        resident: Resident,
        draw: Draw,
        start: Done,
        cmd: str | None,
        scope: str,
        content: bytes,
        settle: Answer,
    ) -> None:
        begun = start.events[0]
        round_ = resident.table.round
        if not isinstance(begun, ShuffleStarted) or round_ is None or round_.number != begun.round:
            settle(NoRound("The round of that draw is over."))
            return
        if round_.shuffle is not None and round_.shuffle.stack == begun.stack:
            if resident.pending_draw is None:
                resident.pending_draw = PendingDraw(draw, [])
            resident.pending_draw.answers.append(settle)
            return
        try:
            await self._on_disk(resident, resident.table.version)
            drawn = await self.archive.drawn_at_seal(resident, draw, after=start.version)
            if drawn is None:
                drawn = await self.call(
                    resident, draw, cmd=f"{cmd}/draw", scope=scope, content=content
                )
        except DealerError as error:
            settle(error)
        else:
            settle(drawn)

    # What a table looks like

    async def snapshot(self, resident: Resident, viewer: Viewer) -> Snapshot:
        """The table as `viewer` may know it, at a version that is on disk."""
        while True:
            version = resident.table.version
            state = view_of(resident.table, viewer)
            for card in state.get("round", {}).get("cards", ()):
                card.append(resident.secret.slot_salt(card[0]).hex())
            edge, root = [node.hex() for node in resident.tree.edge], resident.tree.root()
            if await self._on_disk(resident, version):
                note = self._judge.sign(resident.id, version, root)
                return Snapshot(version, state, edge, note)

    async def checkpoint(self, resident: Resident) -> tuple[int, str]:
        """(size, note) of a kept checkpoint over all that is on disk; a new one if need be."""
        while True:
            version, root = resident.table.version, resident.tree.root()
            if await self._on_disk(resident, version):
                break
        newest = await self.log.newest_checkpoint(resident.id)
        if newest is not None and newest[0] >= version:
            return newest
        note = self._judge.sign(resident.id, version, root)
        await self.log.put_note(resident.id, version, note)
        return version, note

    async def bundle(self, resident: Resident) -> AsyncIterator[str]:
        """The lines, without newlines, of what anybody needs to verify the table offline."""
        size, _ = await self.checkpoint(resident)
        async for line in self.archive.bundle(resident, upto=size):
            yield line

    async def cosign(self, resident: Resident, line: str) -> tuple[int, str]:
        """Attach a player's signature line to the checkpoint that it signs; (size, whole note).

        Raises BadRequest if it is no seated player's signature of one of the latest checkpoints.
        """
        keys = [player.key for player in resident.table.seats.values() if player.key is not None]
        size, note = await self.archive.cosigned(resident, line, keys)
        await self.log.put_note(resident.id, size, note)
        self.publish(resident, Published([], [(size, note)]))
        return size, note

    async def _on_disk(self, resident: Resident, version: int) -> bool:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        resident.when_committed(version, future.set_result)
        return await future

    # Time

    def _arm(self, resident: Resident) -> None:
        """Wake up when the shuffle that runs has waited long enough."""
        if resident.timer is not None:
            resident.timer.cancel()
            resident.timer = None
        round_ = resident.table.round
        due = None if round_ is None else deadline(round_)
        if due is not None:
            delay = max(0, due - self._judge.now()) / 1000
            loop = asyncio.get_running_loop()
            resident.timer = loop.call_later(delay, self._pass_time, resident)

    def _pass_time(self, resident: Resident) -> None:
        resident.timer = None
        self.submit(resident, Request(PassTime(self._judge.now()), lambda _: self._arm(resident)))

    def _keep(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def settling(future: asyncio.Future[Done]) -> Answer:
    """An answer that settles a future, unless who waited for it has gone."""

    def settle(outcome: Outcome) -> None:
        if future.done():
            return
        if isinstance(outcome, Done):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    return settle


def _unavailable(error: DealerError) -> DealerError:
    return error if isinstance(error, Refused) else Unavailable(str(error))
