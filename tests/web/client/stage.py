"""A small house on a stage: it says to one JavaScript player what a test puts into its mouth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dealer.client.line import SUBPROTOCOL
from tests.client.conftest import TABLE, Frame, SmallHouse
from tests.web.client.players import PATIENT, JsError, Players

SEAT = {"token": "seat.1", "seat": 1, "since": 2}
"""What Ada's store remembers: she took seat 1 in event 2."""


class Stage:
    """`house` is what is true; `asked` what the player said, but hello, ping and presence."""

    def __init__(self, house: SmallHouse, players: Players) -> None:
        self.house = house
        self.players = players
        self.asked: list[Frame] = []
        self.answer: dict[str, Any] = {}  # members of the next answers to a resume
        self.frames: list[Frame] | None = None  # in place of the house's own
        self._heard = asyncio.Condition()
        self._socket: Any = None

    async def enter(self, **facts: Any) -> None:
        """Ada comes in: `its.ada` is the table as she has it, as far as she believes."""
        kept = {"seat": SEAT} | facts
        await self.players.run(
            """
            its.store ??= client.memoryStore();
            for (const [name, value] of Object.entries(args.kept)) {
              its.store.set(`dealer/${args.table}/${name}`, JSON.stringify(value));
            }
            its.house = await client.connect(args.url, {
              store: its.store, patience: { backoff: 5, backoffMax: 10 } });
            its.ada = await its.house.join(args.table);
            """,
            kept=kept,
            table=TABLE,
            url=self.url,
        )

    async def begin_with_snapshot(self, described: Frame | None = None, **facts: Any) -> None:
        """Ada comes in, and is told how the table stands in place of what happened."""
        times = self.methods.count("table.resume") + 1
        self.frames = []
        entering = asyncio.ensure_future(self.enter(**facts))
        await self.has_asked("table.resume", times=times)
        await self.snapshot(described or self.house.describe(), proof=[])
        await entering

    async def tell(self, *frames: Frame) -> None:
        """Send events, and behind each the head that is due there."""
        for frame in frames:
            await self.say("event", frame)
            if frame.get("version") in self.house.notes:
                await self.note(self.house.notes[frame["version"]])

    async def tell_all(self) -> None:
        """Send everything that Ada has not heard, and wait until she has taken it in."""
        version = await self.players.run("return its.ada.version")
        frames = self.house.frames[version:]
        await self.tell(*frames)
        await self.believed()
        due = [self.house.notes[f["version"]] for f in frames if f["version"] in self.house.notes]
        await self.players.run(
            "await its.ada.until((table) => args.due.every((n) => table.checkpoints.includes(n)))",
            due=due,
        )

    async def note(self, note: str) -> None:
        await self.say("checkpoint", {"table": TABLE, "size": 0, "note": note})

    async def snapshot(self, described: dict[str, Any], **more: Any) -> None:
        state = {**described, "checkpoint": described["note"]}
        del state["note"]
        await self.say("snapshot", {"table": TABLE, "reset": True, **state, **more})

    async def say(self, method: str, params: Any) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._socket.send(json.dumps(frame))

    async def believed(self) -> None:
        """Wait until Ada has heard all that the house has; she throws what she found out."""
        version = self.house.table.version
        await self.players.run(
            "await its.ada.until((table) => table.version >= args.version)", version=version
        )

    async def caught(self, sentence: str) -> JsError:
        """Wait until Ada leaves, with this in her sentence; what she kept is in its `evidence`."""
        error = await self.players.run(
            """
            const { ada } = its;
            try {
              await ada.until(() => false);
            } catch ({ name, message, check, evidence }) {
              const no = ada.checks.filter(({ state }) => state === "no");
              const kept = JSON.parse(its.store.get(`dealer/${ada.id}/evidence`));
              return { name, message, check, evidence, no: no.map((one) => one.name),
                kept: kept.length, over: String(ada.error) };
            }
            """
        )
        assert error["name"] == "HouseCheated"
        assert sentence in error["message"]
        assert error["kept"] == 1
        assert error["check"] in error["no"]
        assert error["evidence"]["table"] == TABLE
        return JsError(error)

    async def has_asked(self, method: str, *, times: int = 1) -> None:
        """Wait until the player has asked so often."""
        async with asyncio.timeout(PATIENT), self._heard:
            await self._heard.wait_for(lambda: self.methods.count(method) >= times)

    async def hang_up(self) -> None:
        await self._socket.close(1012)

    @property
    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.asked]

    async def serve(self, socket: Any) -> None:
        self._socket = socket
        with suppress(ConnectionClosed):
            async for text in socket:
                await self._hear(json.loads(text))

    async def _hear(self, frame: Frame) -> None:
        method = frame["method"]
        if method in ("session.hello", "ping", "table.presence"):
            await self._reply(frame, {"seats": []})
            return
        async with self._heard:
            self.asked.append(frame)
            self._heard.notify_all()
        if method == "table.resume":
            await self._resume(frame)
        else:
            await self._reply(frame, {"version": self.house.table.version})

    async def _resume(self, frame: Frame) -> None:
        version = self.house.table.version
        answer = {"table": TABLE, "version": version, "checkpoint": self.house.sign()}
        await self._reply(frame, answer | self.answer)
        frames = self.house.frames if self.frames is None else self.frames
        await self.tell(*(one for one in frames if one["version"] > frame["params"]["after"]))

    async def _reply(self, frame: Frame, result: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": frame["id"], "result": result}
        await self._socket.send(json.dumps(answer))


@asynccontextmanager
async def on_stage(house: SmallHouse, players: Players) -> AsyncIterator[Stage]:
    stage = Stage(house, players)
    async with listen(stage.serve, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as server:
        stage.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        yield stage
