"""A JSON-RPC client that keeps every frame it receives, and a raw connection for invalid frames."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
"""A request for a WebSocket, for tests that write their frames to a TCP connection."""


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait until the server has made a condition true."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the server sends no notice of it
            await asyncio.sleep(0.002)


class Refusal(Exception):
    """An error response."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error
        self.code = error["code"]
        self.reason = error.get("data", {}).get("reason")


async def refusal(request: Awaitable[object]) -> Refusal:
    """Why a request is refused."""
    with pytest.raises(Refusal) as caught:
        await request
    return caught.value


async def reason_of(request: Awaitable[object]) -> str | None:
    return (await refusal(request)).reason


async def refused_status(connecting: Awaitable[object]) -> int:
    """The status with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as caught:
        await connecting
    return caught.value.response.status_code


class RpcClient:
    """A client on one WebSocket.

    `frames` are all texts received, in order. `notifications` are the frames for which no request
    waits, in order; a response among them has the method `answer`. `closed` is the close code.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[str] = []
        self.notifications: list[dict[str, Any]] = []
        self.closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._received = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls, port: int, path: str = "/ws", *, host: str | None = None, **settings: Any
    ) -> Self:
        """A client on a new connection; `host` replaces the header `Host`."""
        settings = {"compression": None, "ping_interval": None, "max_size": 2**24} | settings
        if host is None:
            return cls(await connect(f"ws://127.0.0.1:{port}{path}", **settings))
        settings |= {"host": "127.0.0.1", "port": port, "proxy": None}
        return cls(await connect(f"ws://{host}{path}", **settings))

    async def close(self) -> None:
        await self.socket.close()
        await self._task

    def send(self, method: str, id: Any = None, **params: Any) -> asyncio.Future[Any]:
        """Send a request; the future gets its result or a `Refusal`."""
        self._next_id += 1
        id = self._next_id if id is None else id
        params = {name.rstrip("_"): value for name, value in params.items()}
        frame = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        future = self._answers[id] = asyncio.get_running_loop().create_future()
        self._sending = asyncio.create_task(self.socket.send(json.dumps(frame)))

        def sent(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None:
                future.cancel()  # as `_read` does with those of frames that were sent

        self._sending.add_done_callback(sent)
        return future

    async def call(self, method: str, **params: Any) -> Any:
        return await self.send(method, **params)

    async def wait_closed(self) -> int:
        """Wait until the server has closed the connection; the close code."""
        async with asyncio.timeout(30):
            return await self.closed

    async def send_raw(self, message: str | bytes | list[str]) -> None:
        """Send a message as it is: a text, bytes, or a text in fragments."""
        await self.socket.send(message)

    async def until(self, condition: Callable[..., Any]) -> None:
        """Wait until a condition on the received frames is true."""
        async with asyncio.timeout(30):
            while not condition():
                self._received.clear()
                await self._received.wait()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events received, single or in lists, in order."""
        events: list[dict[str, Any]] = []
        for frame in self.notifications:
            if frame["method"] == "event":
                events.append(frame["params"])
            elif frame["method"] == "events":
                events.extend(frame["params"]["list"])
        return events

    @property
    def versions(self) -> list[int]:
        return [event["version"] for event in self.events]

    def types(self, after: int = 0) -> list[str]:
        """The types of the events after a version."""
        return [event["type"] for event in self.events if event["version"] > after]

    def notices(self, method: str) -> list[dict[str, Any]]:
        """The parameters of the notifications of a method."""
        return [frame["params"] for frame in self.notifications if frame["method"] == method]

    async def until_version(self, version: int) -> None:
        """Wait for the event of a version."""
        await self.until(lambda: self.versions and self.versions[-1] >= version)

    async def _read(self) -> None:
        try:
            async for text in self.socket:
                assert isinstance(text, str)
                self.frames.append(text)
                self._take(json.loads(text))
                self._received.set()
        except ConnectionClosed:
            pass
        finally:
            self.closed.set_result(self.socket.close_code or 0)
            self._received.set()
            for future in self._answers.values():
                future.cancel()

    def _take(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            self.notifications.append(frame)
            return
        future = self._answers.pop(frame["id"], None)
        if future is None or future.done():
            self.notifications.append({"method": "answer", "params": frame})
        elif "error" in frame:
            future.set_exception(Refusal(frame["error"]))
        else:
            future.set_result(frame["result"])


async def open_websocket(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection after its handshake, for tests that write their frames themselves."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE)
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer
