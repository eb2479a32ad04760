"""A guest for the tests: it sends frames as they are told, and keeps every byte that comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed


async def eventually(truth: Callable[[], Any]) -> None:
    """Wait for something that the house brings about by itself."""
    async with asyncio.timeout(10):
        while not truth():  # noqa: ASYNC110  the house tells nobody
            await asyncio.sleep(0.002)


class Refusal(Exception):
    """An error that the house answered with."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error
        self.code = error["code"]
        self.reason = error.get("data", {}).get("reason")


class Guest:
    """`frames` are all texts that came, in order; `told` those that answer nothing."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[str] = []
        self.told: list[dict[str, Any]] = []
        self.closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def arrive(
        cls, port: int, path: str = "/ws", *, host: str | None = None, **settings: Any
    ) -> Guest:
        """`host` is what the request names in its header of this name, if not the real one."""
        settings = {"compression": None, "ping_interval": None, "max_size": 2**24} | settings
        if host is None:
            return cls(await connect(f"ws://127.0.0.1:{port}{path}", **settings))
        settings |= {"host": "127.0.0.1", "port": port, "proxy": None}
        return cls(await connect(f"ws://{host}{path}", **settings))

    async def leave(self) -> None:
        await self.socket.close()
        await self._task

    def send(self, method: str, id: Any = None, **params: Any) -> asyncio.Future[Any]:
        """Send a request; its answer comes to the future."""
        self._next_id += 1
        id = self._next_id if id is None else id
        params = {name.rstrip("_"): value for name, value in params.items()}
        frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        future = self._answers[id] = asyncio.get_running_loop().create_future()
        self._sending = asyncio.create_task(self.socket.send(json.dumps(frame)))
        # Where the connection was closed meanwhile, the future of the answer is cancelled.
        self._sending.add_done_callback(lambda task: task.cancelled() or task.exception())
        return future

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.send(method, **params)

    async def gone(self) -> int:
        """Wait until the house closed the connection; its code."""
        async with asyncio.timeout(10):
            return await self.closed

    async def say(self, text: str | bytes) -> None:
        await self.socket.send(text)

    async def until(self, truth: Any) -> None:
        """Wait until something is true of what came."""
        async with asyncio.timeout(10):
            while not truth():
                self._news.clear()
                await self._news.wait()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that came, single or in lists, in order."""
        found: list[dict[str, Any]] = []
        for frame in self.told:
            if frame["method"] == "event":
                found.append(frame["params"])
            elif frame["method"] == "events":
                found.extend(frame["params"]["list"])
        return found

    @property
    def versions(self) -> list[int]:
        return [event["version"] for event in self.events]

    def notices(self, method: str) -> list[dict[str, Any]]:
        return [frame["params"] for frame in self.told if frame["method"] == method]

    async def seen(self, version: int) -> None:
        """Wait for the event of a version."""
        await self.until(lambda: self.versions and self.versions[-1] >= version)

    async def _read(self) -> None:
        try:
            async for text in self.socket:
                assert isinstance(text, str)
                self.frames.append(text)
                self._take(json.loads(text))
                self._news.set()
        except ConnectionClosed:
            pass
        finally:
            self.closed.set_result(self.socket.close_code or 0)
            self._news.set()
            for future in self._answers.values():
                future.cancel()

    def _take(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            self.told.append(frame)
            return
        future = self._answers.pop(frame["id"], None)
        if future is None or future.done():
            self.told.append({"method": "answer", "params": frame})
        elif "error" in frame:
            future.set_exception(Refusal(frame["error"]))
        else:
            future.set_result(frame["result"])
