"""Load clients on a minimal WebSocket client, and tables that draw as fast as they are answered.

It implements RFC 6455 with as little work as possible: the load must not be what is measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

_RESULT = b'{"jsonrpc":"2.0","id":'
_PING = 0x89
_PONG = b"\x8a\x80\0\0\0\0"
"""For the server's pings, which have no payload."""


class LoadClient(asyncio.Protocol):
    """One connection; answers go to the pending requests in order, events are only counted."""

    def __init__(self) -> None:
        self.frames = 0
        self._buffer = b""
        self._open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, Callable[[bytes], None]] = {}
        self._id = 0
        self.transport: asyncio.Transport

    @classmethod
    async def connect(cls, host: str, port: int) -> Self:
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_connection(cls, host, port)
        transport.write(
            b"GET /ws HTTP/1.1\r\nHost: %b:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            % (host.encode(), port)
        )
        await client._open
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data
        if not self._open.done():
            head, blank, buffer = buffer.partition(b"\r\n\r\n")
            if not blank:
                self._buffer = head
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self._open.set_result(None)
        start, end = 0, len(buffer)
        while end - start >= 2:
            length, body = buffer[start + 1], start + 2
            if length == 126:
                if end < body + 2:
                    break
                length, body = int.from_bytes(buffer[body : body + 2], "big"), body + 2
            elif length == 127:
                if end < body + 8:
                    break
                length, body = int.from_bytes(buffer[body : body + 8], "big"), body + 8
            if end < body + length:
                break
            self.frames += 1
            if buffer.startswith(_RESULT, body):
                number = int(buffer[body + len(_RESULT) : buffer.index(b",", body + len(_RESULT))])
                self._waiting.pop(number)(buffer[body : body + length])
            elif buffer[start] == _PING:
                self.transport.write(_PONG)
            else:
                self.pushed(buffer, body, body + length)
            start = body + length
        self._buffer = buffer[start:]

    def pushed(self, buffer: bytes, start: int, end: int) -> None:
        """A frame that was not asked for is `buffer[start:end]`."""

    def ask(
        self, method: str, params: str, answer: Callable[[bytes], None], *, command: bool = True
    ) -> None:
        """Send a request; `params` is the JSON object of its parameters without the braces.

        One with parameters is a `command` with an id, unless it is said not to be.
        """
        self._id += 1
        self._waiting[self._id] = answer
        cmd = f'"cmd":"{self._id}"' if params and command else ""
        inside = ",".join(filter(None, (params, cmd)))
        text = (
            f'{{"jsonrpc":"2.0","id":{self._id},"method":"{method}","params":{{{inside}}}}}'
        ).encode()
        size = len(text)
        head = bytes([0x81, 0x80 | size]) if size < 126 else struct.pack(">BBH", 0x81, 0xFE, size)
        # A mask of zeros is valid, and costs nothing to apply.
        self.transport.write(head + b"\0\0\0\0" + text)

    async def call(
        self, method: str, *, command: bool = True, **params: object
    ) -> dict[str, object]:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.ask(method, json.dumps(params)[1:-1], future.set_result, command=command)
        answer = json.loads(await future)
        assert "result" in answer, answer
        result: dict[str, object] = answer["result"]
        return result


class Table:
    """Seats that draw until the deck is empty, repeatedly; `in_flight` draws at a time."""

    def __init__(self, seats: int, in_flight: int, clock: Clock) -> None:
        self._seats = seats
        self._in_flight = in_flight
        self._turn = 0
        self._clock = clock
        self._players: list[LoadClient] = []
        self._host: LoadClient
        self._id = ""
        self._left = 0
        self._answers = 0

    async def sit_down(self, host: str, port: int) -> None:
        self._host = await LoadClient.connect(host, port)
        opened = await self._host.call("table.open", rules={"preset": "free"})
        self._id = str(opened["table"])
        for seat in range(self._seats):
            client = await LoadClient.connect(host, port)
            await client.call("table.join", table=self._id, name=f"seat {seat}")
            self._players.append(client)
        await self._host.call("round.open", table=self._id, entropy="house")
        await self._host.call("deck.shuffle", table=self._id)

    def play(self) -> None:
        self._left = self._answers = 52
        for _ in range(self._in_flight):
            self._draw()

    def _draw(self) -> None:
        if self._left == 0 or self._clock.over():
            return
        client = self._players[self._turn % self._seats]
        self._turn += 1
        self._left -= 1
        begun = time.perf_counter()

        def answered(answer: bytes) -> None:
            assert b'"result"' in answer, answer
            self._clock.count(time.perf_counter() - begun)
            self._answers -= 1
            if self._answers == 0:
                self._shuffle()
            else:
                self._draw()

        client.ask("deck.draw", f'"table":"{self._id}"', answered)

    def _shuffle(self) -> None:
        """A fresh deck: close the round, open another one and shuffle."""
        table = f'"table":"{self._id}"'
        self._host.ask("round.close", table, _fine)
        self._host.ask("round.open", f'{table},"entropy":"house"', _fine)

        def shuffled(answer: bytes) -> None:
            _fine(answer)
            if not self._clock.over():
                self.play()

        self._host.ask("deck.shuffle", table, shuffled)


def _fine(answer: bytes) -> None:
    assert b'"result"' in answer, answer


class Clock:
    """The duration of a measurement and its counts."""

    def __init__(self, *, warmup: float, seconds: float) -> None:
        self._from = time.perf_counter() + warmup
        self._until = self._from + seconds
        self._seconds = seconds
        self.latencies: list[float] = []

    def over(self) -> bool:
        return time.perf_counter() > self._until

    def count(self, latency: float) -> None:
        if self._from < time.perf_counter() <= self._until:
            self.latencies.append(latency)

    def figures(self) -> dict[str, float]:
        """Draws a second, and the median and 99th percentile of their latencies in ms."""
        ordered = sorted(self.latencies)
        return {
            "rate": len(ordered) / self._seconds,
            "p50": ordered[len(ordered) // 2] * 1000,
            "p99": ordered[int(len(ordered) * 0.99)] * 1000,
        }


async def draws(
    host: str,
    port: int,
    *,
    tables: int,
    seats: int,
    in_flight: int,
    warmup: float,
    seconds: float,
    pid: int,
) -> dict[str, float]:
    """At every table the next seat draws as soon as one of the draws in flight was answered.

    `loop` and `cpu` are µs of the server's main thread, and of all its threads, for one draw.
    """
    playing = []
    clock = Clock(warmup=0, seconds=0)
    for _ in range(tables):
        table = Table(seats, in_flight, clock)
        await table.sit_down(host, port)
        playing.append(table)
    clock.__init__(warmup=warmup, seconds=seconds)  # type: ignore[misc]
    for table in playing:
        table.play()
    await asyncio.sleep(warmup)
    before = cpu_times(pid)
    await asyncio.sleep(seconds)
    loop, cpu = (after - then for after, then in zip(cpu_times(pid), before, strict=True))
    figures = clock.figures()
    count = len(clock.latencies)
    return figures | {"loop": loop / count * 1e6, "cpu": cpu / count * 1e6}


async def idle(host: str, port: int, *, connections: int, pid: int) -> float:
    """KiB of the server's memory for each idle connection."""
    before = memory(pid)
    clients = [await LoadClient.connect(host, port) for _ in range(connections)]
    for client in clients:
        await client.call("ping")
    grown = memory(pid) - before
    for client in clients:
        client.transport.close()
    return grown / connections / 1024


def cpu_times(pid: int) -> tuple[float, float]:
    """Seconds of processor time of a process's main thread, and of all its threads."""
    used = {
        int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9
        for task in Path(f"/proc/{pid}/task").iterdir()
    }
    return used[pid], sum(used.values())


def memory(pid: int) -> int:
    """The memory of a process in bytes (RSS)."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
