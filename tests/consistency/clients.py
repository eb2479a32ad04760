"""The clients of a run: what they ask is in the history before it is sent.

Invariants: a command whose answer was lost is sent again with its id, as an operation of its own,
until it is answered. Nothing is known of the first one. The clients of the libraries repeat a
command automatically; an operation that they give up has no known outcome.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import Any

from websockets.exceptions import WebSocketException

from dealer.client import RetryPolicy, connect
from dealer.errors import DealerError, HouseCheated
from tests.consistency.history import History, Operation, done_by, state_of
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.server_process import PATIENT
from tests.web.client.node_client import sockets
from tests.web.js_verifier import node
from tests.webhooks.receiver import Receiver

HERE = Path(__file__).parent
TABLES = 4
ANSWER = 3.0
"""Seconds after which a client takes an answer for lost, and its connection with it."""

RETRIED = ("unavailable", "overloaded")

LATE = "accepted after the last event"
"""Counts those who ask to watch and are shown the end of the table, so that no event is left."""


class Clients:
    """Clients at `TABLES` tables, until `operations` were begun."""

    def __init__(self, port: Callable[[], int], *, operations: int, seed: int) -> None:
        self.history = History()
        self.tables: list[str] = []
        self.keys: dict[str, str] = {}
        self._port = port
        self._seed = seed
        self._chance = random.Random(seed)
        self._left = operations
        self.cheated = 0
        self._tokens: dict[tuple[str, int], str] = {}
        self._newest: Counter[str] = Counter()
        self._newest_sent: Counter[str] = Counter()
        self._looked_at = 0  # requests of webhooks
        self._ids = 0
        self._readers: list[asyncio.Task[None]] = []
        self.reached: dict[tuple[str, str], int] = {}
        self.subscriptions: Counter[str] = Counter()
        """Requests to watch by their answer: `accepted`, `no answer`, or why they were refused."""

    @property
    def begun(self) -> int:
        return len(self.history.operations)

    # Before the faults

    async def sit_down(self) -> None:
        """Open the tables; a read of each is its first operation."""
        for _ in range(TABLES):
            host = await RpcClient.connect(self._port())
            opened = await host.call("table.open", seats=4)
            table = opened["table"]
            self.keys[table] = opened["key"]
            for seat in (1, 4):
                player = await RpcClient.connect(self._port())
                joined = await player.call("table.join", table=table, name=f"P{seat}", seat=seat)
                self._tokens[table, seat] = joined["token"]
                await player.close()
            await host.call("round.open", entropy="house", deck={"decks": 8})
            await host.call("deck.shuffle")
            await host.close()
            self.tables.append(table)

    async def begin(self) -> None:
        """The read before all others, once the clients of the libraries sit."""
        for table in self.tables:
            client = await RpcClient.connect(self._port())
            operation = self.history.begin(Operation(table, "first", "state"))
            operation.out = state_of(await client.call("table.state", table=table))
            operation.end = monotonic_ns()
            self._newest[table] = operation.out["version"]
            await client.close()

    # Clients that send frames

    async def play(self) -> None:
        workers = [
            worker
            for table in self.tables
            for worker in (
                self._seated(table, 1, "one"),
                self._seated(table, 1, "two"),
                self._coming(table, "three"),
            )
        ]
        await asyncio.gather(*workers)

    def _take(self) -> bool:
        self._left -= 1
        return self._left >= 0

    async def _seated(self, table: str, seat: int, name: str) -> None:
        """Draws, discards, reads and resumes, on connections that may break."""
        caller = Caller(self, table, f"{name}-{table[-4:]}")
        held: list[int] = []
        while self._take():
            kind = self._chance.random()
            if kind < 0.2:
                await caller.read()
            elif kind < 0.25:
                await caller.resume(self._tokens[table, seat])
            elif len(held) > 5 and kind < 0.6:
                cards = [held.pop(), held.pop()]
                await caller.command("discard", "hand.discard", seat, 2, {"cards": cards})
            else:
                count = self._chance.choice((1, 1, 2))
                out = await caller.command("draw", "deck.draw", seat, count, {"count": count})
                held.extend(out.get("slots", ()))
        await caller.close()

    async def _coming(self, table: str, name: str) -> None:
        """Joins and leaves the same seat, and draws meanwhile."""
        caller, seat = Caller(self, table, f"{name}-{table[-4:]}"), 4
        while self._take():
            if self._chance.random() < 0.3:
                await caller.command("leave", "table.leave", seat, 1, {})
                params = {"name": f"P{self._ids}", "seat": seat}
                out = await caller.command("join", "table.join", seat, 1, params)
                if "token" in out:
                    self._tokens[table, seat] = out["token"]
            else:
                await caller.command("draw", "deck.draw", seat, 1, {"count": 1})
        await caller.close()

    # The clients of the libraries

    async def python_client(self, url: str) -> tuple[Any, list[Any]]:
        """The Python client, in seat 2 of each table."""
        patience = RetryPolicy(backoff=0.02, backoff_max=0.2, answer=ANSWER, away=PATIENT)
        house = connect(url, name="Py", patience=patience)
        await house.__aenter__()
        return house, [await house.join(table, name="Py", seat=2) for table in self.tables]

    async def play_python(self, seats: list[Any]) -> None:
        await asyncio.gather(*(self._python(seat) for seat in seats))

    async def _python(self, remote: Any) -> None:
        held: list[int] = []
        while self._take():
            params: dict[str, Any]
            if discards := len(held) > 4 and self._chance.random() < 0.5:
                op, method, params = "discard", "hand.discard", {"cards": [held.pop()]}
            else:
                op, method, params = "draw", "deck.draw", {"count": 1}
            operation = self.history.begin(Operation(remote.id, "py", op, seat=2, count=1))
            try:
                result = await remote.call(method, **params)
                operation.out = {"version": result["version"], "slots": result.get("slots", [])}
                operation.end = monotonic_ns()
                held.extend(() if discards else result["slots"])
            except HouseCheated:
                self.cheated += 1
                break
            except DealerError as error:
                reason = getattr(error, "reason", None)
                if reason not in (None, *RETRIED):
                    operation.out, operation.end = {"refused": str(reason)}, monotonic_ns()
        for note in remote.checkpoints:
            self.history.saw_head(note, "py")

    async def javascript_client(self, url: str, operations: int) -> asyncio.subprocess.Process:
        """The JavaScript client, in seat 3 of each table; it plays once it gets a line."""
        places = json.dumps([{"table": table, "seat": 3} for table in self.tables])
        process = await asyncio.create_subprocess_exec(
            node(), *sockets(), str(HERE / "player.mjs"), url, places, str(operations),
            str(self._seed), stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**24,
        )  # fmt: skip
        assert process.stdout is not None
        assert await process.stdout.readline() == b'{"ready":true}\n'
        return process

    async def play_javascript(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"play\n")
        async for text in process.stdout:
            line = json.loads(text)
            if "cheated" in line:
                self.cheated += 1
                continue
            if "head" in line:
                self.history.saw_head(line["head"], "js")
                continue
            end = line.pop("return", None)
            self.history.begin(Operation(**line, end=end))
        await process.wait()

    # Those who read events

    def read_events(self, key: str, receiver: Receiver) -> None:
        """A spectator of each table, and a follower of the feed; webhooks are read at the end."""
        self._receiver = receiver
        for table in self.tables:
            self._readers.append(asyncio.create_task(self._watch(table)))
        self._readers.append(asyncio.create_task(self._follow(key)))

    def _received(self, table: str, client: str, first: int, last: int, did: str = "") -> None:
        now = monotonic_ns()
        out = {"first": first, "version": last} | ({"did": did} if did else {})
        self.history.begin(Operation(table, client, "events", count=1, call=now, end=now, out=out))
        self.reached[client, table] = last

    async def _watch(self, table: str) -> None:
        """A spectator, who comes back with the version that it has."""
        after: int | None = None
        while True:
            with suppress(OSError, WebSocketException):
                after = await self._watch_once(table, after)
            await asyncio.sleep(0.02)

    async def _watch_once(self, table: str, after: int | None) -> int | None:
        """Watch until the connection breaks, or is refused; the last version that was seen.

        A subscription is kept for as long as it is silent: every event has to come automatically.
        """
        client = await RpcClient.connect(self._port())
        frames = client.notifications
        try:
            first = await self._subscribe(client, table, after)
            if first is None:
                return after
            after = first - 1
            while not client.closed.done():
                with suppress(TimeoutError):
                    await client.until(lambda: frames or client.closed.done())
                for frame in frames:
                    after = self._frame(table, frame, after)
                frames.clear()
        finally:
            await client.close()
        return after

    async def _subscribe(self, client: RpcClient, table: str, after: int | None) -> int | None:
        """Ask to watch; the first version that has to come, None without a subscription."""
        asked = self.history.begin(Operation(table, "watch", "watch"))
        params = {} if after is None else {"after": after}
        sent = client.send("table.watch", table=table, **params)
        await asyncio.wait((sent,), timeout=ANSWER)
        if not sent.done() or sent.cancelled():
            self.subscriptions["no answer"] += 1
            client.socket.transport.abort()
            return None
        asked.end = monotonic_ns()
        error = sent.exception()
        if isinstance(error, Refusal):
            self.subscriptions[str(error.reason)] += 1
            asked.out = {"refused": str(error.reason)}
            return None
        result = sent.result()
        self.subscriptions["accepted"] += 1
        self.history.saw_head(result["checkpoint"], "watch")
        if after is None:  # it was shown the table as it is at this version
            after = self.reached["watch", table] = result["version"]
        asked.out = {"version": result["version"], "first": after + 1}
        return after + 1

    def _frame(self, table: str, frame: dict[str, Any], after: int) -> int:
        params = frame.get("params", {})
        if frame["method"] == "checkpoint":
            self.history.saw_head(params["note"], "watch")
        elif frame["method"] in ("event", "events"):
            events = params["list"] if frame["method"] == "events" else [params]
            self._received(table, "watch", events[0]["version"], events[-1]["version"])
            return int(events[-1]["version"])
        return after

    async def _follow(self, key: str) -> None:
        """`GET /feed` of all tables, from the last position."""
        position = "start"
        while True:
            with suppress(OSError, EOFError, ValueError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port())
                try:
                    writer.write(
                        f"GET /feed?after={position} HTTP/1.0\r\nHost: localhost\r\n"
                        f"Authorization: Bearer {key}\r\n\r\n".encode()
                    )
                    await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENT)
                    async for text in reader:
                        position = self._read_line(text, position)
                finally:
                    writer.close()
            await asyncio.sleep(0.05)

    def _read_line(self, text: bytes, position: str) -> str:
        """The position after a line of the feed."""
        if not text.startswith(b"{"):
            return position
        found = json.loads(text)
        if found["table"] in self.keys:
            version = found["version"]
            self._received(found["table"], "feed", version, version, done_by(found["event"]))
        return str(found["position"])

    async def finish(self) -> None:
        """Read each table again; then every reader must have come as far."""
        ends: dict[str, int] = {}
        for table in self.tables:
            caller = Caller(self, table, "last")
            ends[table] = (await caller.read(must=True))["version"]
            await caller.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENT):
                while any(  # noqa: ASYNC110  other processes
                    self.reached.get((client, table), 0) < ends[table]
                    for client in ("watch", "feed")
                    for table in self.tables
                ):
                    await asyncio.sleep(0.05)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENT):
                while not self._delivered(ends):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._deliveries()
        self._count_late(ends)
        now = monotonic_ns()
        for table in self.tables:
            for client in ("watch", "feed", "webhook"):
                out = {"first": 1, "version": self.reached.get((client, table), 0)}
                self.history.begin(Operation(table, client, "events", call=now, end=now, out=out))

    def _count_late(self, ends: dict[str, int]) -> None:
        """Count the spectators who were shown the end of their table before they got an event."""
        shown = {
            one.table
            for one in self.history.operations
            if one.op == "watch" and (one.out or {}).get("first", 0) > ends[one.table]
        }
        notified = {
            one.table
            for one in self.history.operations
            if (one.op, one.client) == ("events", "watch")
        }
        if late := len(shown - notified):
            self.subscriptions[LATE] = late

    def _delivered(self, ends: dict[str, int]) -> bool:
        for request in self._receiver.requests[self._looked_at :]:
            data = request.event["data"]
            self._newest_sent[data["table"]] = max(
                self._newest_sent[data["table"]], data["version"]
            )
            self._looked_at += 1
        return all(self._newest_sent[table] >= ends[table] for table in self.tables)

    def _deliveries(self) -> None:
        """What came by webhook, in its order; it is not compared with the time of a commit."""
        for event in self._receiver.events:
            data = event["data"]
            if data["table"] in self.keys:
                self._received(data["table"], "webhook", data["version"], data["version"])


class Caller:
    """A client that sends frames on one connection, and connects again when it breaks."""

    def __init__(self, run: Clients, table: str, name: str) -> None:
        self._run, self._table, self._name = run, table, name
        self._client: RpcClient | None = None
        self._said = ""  # with the last refusal

    async def close(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                await self._client.close()

    async def read(self, *, must: bool = False) -> dict[str, Any]:
        while True:
            operation = Operation(self._table, self._name, "state")
            out = await self._ask(operation, "table.state", {"table": self._table}, state_of)
            if out is not None or not must:
                return out or {}

    async def resume(self, token: str) -> None:
        after = self._run._newest[self._table]
        params = {"table": self._table, "token": token, "after": max(1, after - 5)}
        operation = Operation(self._table, self._name, "resume")
        await self._ask(operation, "table.resume", params, _version)

    async def command(
        self, op: str, method: str, seat: int, count: int, params: dict[str, Any]
    ) -> dict[str, Any]:
        """Send until it is answered; sometimes at an older version, sometimes twice."""
        run = self._run
        run._ids += 1
        # One that cannot be guessed: only such a join is recognised on another connection.
        cmd, expect = f"c{run._ids}-{run._chance.randbytes(16).hex()}", None
        params = {"table": self._table, "cmd": cmd} | params
        if method != "table.join":
            params["token"] = run._tokens[self._table, seat]
        if op == "draw" and run._chance.random() < 0.1:
            expect = run._newest[self._table] - run._chance.choice((0, 0, 1))
            params["expect"] = expect
        twice = run._chance.random() < 0.05
        out: dict[str, Any] | None = None
        until = monotonic() + 5 * PATIENT
        while out is None or twice:
            twice = twice and out is None
            operation = Operation(
                self._table, self._name, op, seat=seat, count=count, cmd=cmd, expect=expect
            )
            found = await self._ask(operation, method, params, _granted)
            out = found or out
            if monotonic() > until:
                raise AssertionError(f"{method} {cmd} was never answered: {self._said}")
        return out

    async def _ask(
        self,
        operation: Operation,
        method: str,
        params: dict[str, Any],
        kept: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> dict[str, Any] | None:
        """The answer to one request, as the history keeps it; None if it is lost."""
        run = self._run
        try:
            if self._client is None or self._client.closed.done():
                self._client = await asyncio.wait_for(RpcClient.connect(run._port()), ANSWER)
        except (OSError, EOFError, TimeoutError, WebSocketException):
            await asyncio.sleep(0.02)
            return None
        operation.call = monotonic_ns()
        run.history.begin(operation)
        sent = self._client.send(method, **params)
        try:
            async with asyncio.timeout(ANSWER):
                result = await sent
        except Refusal as refusal:
            if refusal.reason is None:  # no request: a fault of this program
                raise
            self._said = str(refusal)
            if refusal.reason in RETRIED:
                await asyncio.sleep(0.02)
                return None
            operation.out, operation.end = {"refused": refusal.reason}, monotonic_ns()
            return operation.out
        except (TimeoutError, asyncio.CancelledError, OSError, WebSocketException):
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            self._client.socket.transport.abort()
            self._client = None
            return None
        operation.end = monotonic_ns()
        operation.out = kept(result)
        version = result.get("version", 0)
        run._newest[self._table] = max(run._newest[self._table], version)
        if "checkpoint" in result:
            run.history.saw_head(result["checkpoint"], self._name)
        for frame in self._client.notices("checkpoint"):
            run.history.saw_head(frame["note"], self._name)
        self._client.notifications.clear()
        self._client.frames.clear()
        return {**operation.out, **({"token": result["token"]} if "token" in result else {})}


def _version(result: dict[str, Any]) -> dict[str, Any]:
    return {"version": result["version"]}


def _granted(result: dict[str, Any]) -> dict[str, Any]:
    return {"version": result["version"], "slots": result.get("slots", [])}
