"""Actors: callers of the service who play by the steps of a plan, as a gateway's connections do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from json import loads
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dealer.errors import DealerError
from dealer.eventlog import EventRecord
from dealer.game import commands as c
from dealer.game.commands import Command
from dealer.game.events import SeatTaken
from dealer.game.state import SeatHolder, Table
from dealer.proof.round_keys import player_digest
from dealer.service import CommandResult, IdempotencyKey, Service
from tests.simulation.core.calls import Call, RandomDrawCall, TableCall, WorkCall
from tests.simulation.core.choices import CHOICES
from tests.simulation.core.following import Following
from tests.simulation.plan import Step

if TYPE_CHECKING:
    from tests.simulation.core.node import CoreNode
    from tests.simulation.core.world import CoreWorld


class Actor(Following):
    """One caller; `table` is where it plays, `holder` its seat there."""

    def __init__(self, world: CoreWorld, name: str) -> None:
        super().__init__(world, name)
        self.random = Random(f"actor {world.plan.seed} {name}")
        self.holder: SeatHolder | None = None
        self.host = False
        self.waiting: list[Call] = []
        self._joining = False
        self._sent_at = 0.0
        self._transit = 0.0
        self._count = 0

    def do(self, step: Step) -> None:
        """Carry out a step, which begins now."""
        random = Random(step.number)
        own: Callable[[Random], None] | None = getattr(self, f"do_{step.what}", None)
        if own is not None:
            own(random)
        elif self.table:
            self._command(step.what, CHOICES[step.what](self, self.seen_table(), random))

    def sender(self) -> c.Actor:
        if self.holder is None:
            return c.Actor(self.host)
        return c.Actor(self.host, self.holder.seat, self.holder.taken_at)

    def seen_table(self) -> Table:
        """The state by which commands are chosen: that in the memory of any node."""
        for node in self.world.nodes:
            if node.service is not None:
                live_table = node.service.tables.get(self.table)
                if live_table is not None:
                    return live_table.table
        return Table()

    # Calls

    def choose_node(self) -> CoreNode:
        """Mostly the node of its connection, otherwise any, rarely one that is down.

        In a plan of turns, the node whose turn it is, unless that is down.
        """
        if self.world.turn is not None and self.world.turn.up:
            return self.world.turn
        if self.stream is not None and self.random.random() < 0.7:
            return self.stream.node
        nodes = self.world.nodes
        up = [node for node in nodes if node.up]
        return self.random.choice(up if up and self.random.random() < 0.95 else nodes)

    def transit(self) -> float:
        """Seconds that a message takes; what is sent at one time arrives at one time, in order."""
        if self._sent_at == self.world.loop.now:
            self._transit += 1e-9
        else:
            self._sent_at = self.world.loop.now
            self._transit = self.random.choice((0.0002, 0.002, 0.002, 0.03)) * self.random.random()
        return self._transit

    def is_lost(self, node: CoreNode) -> bool:
        """Whether a message between this actor and a node does not arrive."""
        world = self.world
        if world.network.blocked(self.name, node.name):
            return True
        share = 0.0 if world.quiet else world.plan.settings["lost_calls"]
        return bool(share) and self.random.random() < share

    def send(self, call: Call) -> None:
        self.waiting.append(call)
        call.send()

    def next_key(self) -> IdempotencyKey:
        self._count += 1
        scope = "host" if self.holder is None else f"seat:{self.holder.seat}:{self.holder.taken_at}"
        return IdempotencyKey(scope, f"{self.name}-{self._count}", str(self._count).encode())

    def _command(
        self,
        what: str,
        command: Command,
        *,
        key: IdempotencyKey | None = None,
        expect: int | None = None,
        then: Callable[[Any], None] | None = None,
    ) -> None:
        kind = RandomDrawCall if isinstance(command, c.DrawAtRandom) else TableCall
        key = self.next_key() if key is None else key
        call = kind(self, what, self.table, command, key, expect=expect, then=then)
        self.send(call)

    def note(self) -> c.AddNote:
        self._count += 1
        return c.AddNote(self.sender(), "chat", f"{self.name} {self._count}")

    # Steps that are more than one command

    def do_twice(self, random: Random) -> None:
        """One command under one id, sent twice."""
        if self.table:
            what = random.choice(("note", "note", "draw", "round_open", "shuffle", "play"))
            command = CHOICES[what](self, self.seen_table(), random)
            key = self.next_key()
            self._command(what, command, key=key)
            call = TableCall(self, f"{what} again", self.table, command, key, then=None)
            call.begun = 0
            self.waiting.append(call)
            later = random.choice((0.0, 0.01, 0.5))
            self.world.loop.call_later(later, call.send, context=self.domain.context)

    def do_other_content(self, random: Random) -> None:
        """Another command under the same id, which is refused unless the first was not written."""
        if self.table:
            key = self.next_key()
            self._command("note", self.note(), key=key)
            self._command("other note", self.note(), key=replace(key, content=b"other"))

    def do_expect(self, random: Random) -> None:
        if self.table:
            version = self.seen_table().version
            self._command("expect", self.note(), expect=version)

    def do_open_table(self, random: Random) -> None:
        settings = self.world.plan.settings
        rules = {"seats": 4, "preset": "shared", "entropy": settings["entropy"]}
        cmd = f"{self.name} opens {random.getrandbits(128)}"
        key = IdempotencyKey("new", cmd, b"open")

        async def work(service: Service) -> str:
            live_table, done = await service.open_table(rules, key=key)
            known = self.world.witness.log.get(live_table.table_id, ())
            if done.version > len(known) and not self.world.restores:
                self.world.fault(f"{self.name} opened a table that is not on disk")
            return live_table.table_id

        def opened(outcome: Any) -> None:
            if not isinstance(outcome, DealerError):
                self.go_to(outcome, None, host=True)
                self.world.tables.append(outcome)
                self.do_join(random)

        self.send(WorkCall(self, "open_table", work, then=opened))

    def go_to(self, table: str, holder: SeatHolder | None, *, host: bool) -> None:
        """Play at this table from now on."""
        if table != self.table:
            self.version = 0
        self.table, self.holder, self.host = table, holder, host
        if self.stream is not None and self.stream.live_table.table_id != table:
            self.lose_stream()

    def do_join(self, random: Random) -> None:
        table = self.world.tables[-1] if self.world.tables else ""
        if not table or self._joining or (table == self.table and self.holder is not None):
            return
        self._joining = True
        if table != self.table:
            self.go_to(table, None, host=False)
        cmd = f"{self.name} joins {random.getrandbits(128)}"

        def taken(outcome: Any) -> None:
            self._joining = False
            if isinstance(outcome, CommandResult) and self.table == table:
                seat = next(one.seat for one in outcome.events if isinstance(one, SeatTaken))
                self.holder = SeatHolder(seat, outcome.version)

        key = IdempotencyKey("new", cmd, b"join")
        self._command("join", c.TakeSeat(self.name), key=key, then=taken)

    def do_leave(self, random: Random) -> None:
        if self.table:

            def left(outcome: Any) -> None:
                if isinstance(outcome, CommandResult):
                    self.holder = None

            self._command("leave", c.LeaveSeat(self.sender()), then=left)

    def do_snapshot(self, random: Random) -> None:
        table, viewer, begun = self.table, self.holder, self.world.witness.newest(self.table)
        restores = self.world.restores

        async def work(service: Service) -> None:
            found = await service.checkpoints.snapshot(await service.lifecycle.load(table), viewer)
            if restores != self.world.restores:
                return
            if not begun <= found.version <= len(self.world.witness.log.get(table, ())):
                self.world.fault(f"a snapshot at {found.version} after {begun} was answered")

        if table:
            self.send(WorkCall(self, "snapshot", work))

    def do_checkpoint(self, random: Random) -> None:
        table = self.table

        async def work(service: Service) -> None:
            size, _ = await service.checkpoints.checkpoint(await service.lifecycle.load(table))
            if size > len(self.world.witness.log.get(table, ())) and not self.world.restores:
                self.world.fault(f"a checkpoint of {size} events that are not on disk")

        if table:
            self.send(WorkCall(self, "checkpoint", work))

    def do_feed(self, random: Random) -> None:
        self.send(WorkCall(self, "feed", self.world.feed.page))

    # Events

    def received(self, table: str, entries: Sequence[EventRecord]) -> None:
        """Events of the stream; a player contributes to the shuffles that ask for it."""
        if table == self.table:
            self.version = entries[-1].version
        if self.world.plan.settings["entropy"] != "players" or self.holder is None:
            return
        for entry in entries:
            if entry.type in ("ShuffleStarted", "EntropyClosed"):
                public = loads(entry.leaf)["public"]
                self.world.loop.call_later(
                    0.01, self._entropy, entry.type, public, context=self.domain.context
                )

    def _entropy(self, type: str, public: dict[str, Any]) -> None:
        if self.holder is None or self.world.quiet:
            return  # at the end shuffles end by their deadlines
        round_, k, seat = public["round"], public["k"], self.holder.seat
        nonce = sha256(f"{self.table} {round_} {k} {self.name}".encode()).digest()
        if type == "ShuffleStarted":
            table = bytes.fromhex(self.table)
            digest = player_digest(table=table, round=round_, k=k, seat=seat, nonce=nonce)
            self._command("commit", c.CommitEntropy(self.sender(), round_, k, digest))
        elif self.random.random() < 0.9:
            self._command("reveal", c.RevealEntropy(self.sender(), round_, k, nonce))
