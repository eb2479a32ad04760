"""A server that sends one JavaScript client what a test scripts, and records its requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dealer.client.connection import SUBPROTOCOL
from tests.client.conftest import TABLE, Frame, InMemoryHouse
from tests.web.client.node_client import TIMEOUT, JsError, NodeClient

SEAT = {"token": "seat.1", "seat": 1, "since": 2}
"""The stored facts of Ada, who took seat 1 in event 2."""


class ScriptedServer:
    """`house` has the true log; `requests` are the client's, except hello, ping and presence."""

    url: str

    def __init__(self, house: InMemoryHouse, clients: NodeClient) -> None:
        self.house = house
        self.clients = clients
        self.requests: list[Frame] = []
        self.answer: dict[str, Any] = {}  # members of the next answers to a resume
        self.frames: list[Frame] | None = None  # in place of the house's own
        self._request_received = asyncio.Condition()
        self._socket: Any = None

    async def enter(self, **facts: Any) -> None:
        """Let Ada join: `its.ada` is her table."""
        stored = {"seat": SEAT} | facts
        await self.clients.run(
            """
            its.store ??= client.memoryStore();
            for (const [name, value] of Object.entries(args.stored)) {
              its.store.set(`dealer/${args.table}/${name}`, JSON.stringify(value));
            }
            its.house = await client.connect(args.url, {
              store: its.store, retry: { backoff: 5, backoffMax: 10 } });
            its.ada = await its.house.join(args.table);
            """,
            stored=stored,
            table=TABLE,
            url=self.url,
        )

    async def begin_with_snapshot(self, described: Frame | None = None, **facts: Any) -> None:
        """Let Ada join with a snapshot in place of events."""
        times = self.methods.count("table.resume") + 1
        self.frames = []
        entering = asyncio.ensure_future(self.enter(**facts))
        await self.has_requested("table.resume", times=times)
        await self.snapshot(described or self.house.describe(), proof=[])
        await entering

    async def send(self, *frames: Frame) -> None:
        """Send events, each with the checkpoint that is due after it."""
        for frame in frames:
            await self.notify("event", frame)
            if frame.get("version") in self.house.notes:
                await self.note(self.house.notes[frame["version"]])

    async def send_all(self) -> None:
        """Send all events that Ada has not received, and wait until she has processed them."""
        version = await self.clients.run("return its.ada.version")
        frames = self.house.frames[version:]
        await self.send(*frames)
        await self.caught_up()
        due = [self.house.notes[f["version"]] for f in frames if f["version"] in self.house.notes]
        await self.clients.run(
            "await its.ada.until((table) => args.due.every((n) => table.checkpoints.includes(n)))",
            due=due,
        )

    async def note(self, note: str) -> None:
        await self.notify("checkpoint", {"table": TABLE, "size": 0, "note": note})

    async def snapshot(self, described: dict[str, Any], **more: Any) -> None:
        state = {**described, "checkpoint": described["note"]}
        del state["note"]
        await self.notify("snapshot", {"table": TABLE, "reset": True, **state, **more})

    async def notify(self, method: str, params: Any) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._socket.send(json.dumps(frame))

    async def caught_up(self) -> None:
        """Wait until Ada has all events; throws the error of her client."""
        version = self.house.table.version
        await self.clients.run(
            "await its.ada.until((table) => table.version >= args.version)", version=version
        )

    async def caught(self, sentence: str) -> JsError:
        """Wait until Ada's client accuses the server with this sentence; it has the `evidence`."""
        error = await self.clients.run(
            """
            const { ada } = its;
            try {
              await ada.until(() => false);
            } catch ({ name, message, check, evidence }) {
              const no = ada.checks.filter(({ state }) => state === "no");
              const stored = JSON.parse(its.store.get(`dealer/${ada.id}/evidence`));
              return { name, message, check, evidence, no: no.map((one) => one.name),
                stored: stored.length, over: String(ada.error) };
            }
            """
        )
        assert error["name"] == "HouseCheated"
        assert sentence in error["message"]
        assert error["stored"] == 1
        assert error["check"] in error["no"]
        assert error["evidence"]["table"] == TABLE
        return JsError(error)

    async def has_requested(self, method: str, *, times: int = 1) -> None:
        """Wait until the client has sent this many requests of a method."""
        async with asyncio.timeout(TIMEOUT), self._request_received:
            await self._request_received.wait_for(lambda: self.methods.count(method) >= times)

    async def lose_connection(self) -> None:
        """The connection is lost, and Ada resumes on a new one."""
        times = self.methods.count("table.resume")
        await self._socket.close(1012)
        await self.has_requested("table.resume", times=times + 1)

    @property
    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.requests]

    async def serve(self, socket: Any) -> None:
        self._socket = socket
        with suppress(ConnectionClosed):
            async for text in socket:
                await self._handle(json.loads(text))

    async def _handle(self, frame: Frame) -> None:
        method = frame["method"]
        if method in ("session.hello", "ping", "table.presence"):
            await self._reply(frame, {"seats": []})
            return
        async with self._request_received:
            self.requests.append(frame)
            self._request_received.notify_all()
        if method == "table.resume":
            await self._resume(frame)
        else:
            await self._reply(frame, {"version": self.house.table.version})

    async def _resume(self, frame: Frame) -> None:
        version = self.house.table.version
        answer = {"table": TABLE, "version": version, "checkpoint": self.house.sign()}
        await self._reply(frame, answer | self.answer)
        frames = self.house.frames if self.frames is None else self.frames
        await self.send(*(one for one in frames if one["version"] > frame["params"]["after"]))

    async def _reply(self, frame: Frame, result: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": frame["id"], "result": result}
        await self._socket.send(json.dumps(answer))


@asynccontextmanager
async def scripted_server(
    house: InMemoryHouse, clients: NodeClient
) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(house, clients)
    async with listen(scripted.serve, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as server:
        scripted.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        yield scripted
