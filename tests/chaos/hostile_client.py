"""A client for attacks: raw TCP and WebSocket from its own address, with little CPU time.

It binds its sockets to the hostile address, resets them on close (so that no port stays in
TIME_WAIT), and parses only answers to its own requests.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dealer.proof.round_keys import player_digest
from tests.chaos.hostile_pace import Pace, Tally, Throttle

TOO_FAST = 4529
ANSWER_SECONDS = 5.0
BIG_DECK = {"decks": 20, "cards": [f"{number:013d}" for number in range(51)]}
"""1,020 cards with the longest codes allowed, in a short message."""

SERVER = "127.0.0.1"


class Rejected(Exception):
    """The handshake was not answered with 101; the text is the status."""


class Closed(Exception):
    """The server closed the connection; the text is the code."""


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        data = error.get("data", {})
        self.reason: str = data.get("reason", str(error["code"]))
        self.retry_after = data.get("retry_after_ms", 0) / 1000
        super().__init__(self.reason)


@dataclass
class Attacker:
    """One worker of one attack; `honest` are ids of the honest players' tables, `own` its own.

    A patient attacker has a `throttle`, which it shares with the others.
    """

    port: int
    address: str
    chance: random.Random
    tally: Tally
    pace: Pace
    honest: list[str]
    own: list[tuple[str, str]]
    throttle: Throttle | None = None
    until: float = 0.0
    first_table: tuple[str, str] | None = None  # a table of this worker, and its host token

    def running(self) -> bool:
        return time.monotonic() < self.until

    async def rest(self, seconds: float) -> None:
        """Wait, but not past the end of this visit."""
        await asyncio.sleep(max(0.0, min(seconds, self.until - time.monotonic())))

    async def dial(self, *, small: bool = False) -> socket.socket:
        """A TCP connection; with a `small` receive buffer for a client that will not read."""
        await self.pace()
        sock = socket.socket()
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if small:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            sock.bind((self.address, 0))
            async with asyncio.timeout(ANSWER_SECONDS):
                await asyncio.get_running_loop().sock_connect(sock, (SERVER, self.port))
        except BaseException:
            sock.close()
            raise
        self.tally.connections += 1
        return sock

    async def connect(
        self, *, small: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(sock=await self.dial(small=small), limit=2**16)

    async def socket(self, *, small: bool = False, path: str = "/ws", more: str = "") -> Socket:
        """A WebSocket connection; raises Rejected if the server refuses it."""
        if self.throttle is not None:
            await self.throttle()
        reader, writer = await self.connect(small=small)
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Version: 13\r\n{more}\r\n".encode()
        )
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except BaseException:
            writer.transport.abort()
            raise
        status = head.split(b" ", 2)[1].decode()
        if status != "101":
            writer.transport.abort()
            if self.throttle is not None:
                after = re.search(rb"\r\nRetry-After: ([0-9]+)", head)
                self.throttle.on_refused(float(after[1]) if after else 1.0)
            raise Rejected(status)
        self.tally.admitted += 1
        return Socket(self, reader, writer)

    async def get(self, path: str, *, small: bool = False, more: str = "") -> tuple[Any, Any]:
        """A GET request that was sent; no byte of the answer was read."""
        reader, writer = await self.connect(small=small)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
        self.tally.requests += 1
        return reader, writer


class Socket:
    """A WebSocket connection of the attacker; a non-empty `table` goes into every request."""

    def __init__(
        self, me: Attacker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._me = me
        self._reader = reader
        self.writer = writer
        self._id = 0
        self.table: str | None = None
        self.latest: dict[str, bytes] = {}  # the latest notification of each method

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def send_frame(self, data: bytes, first: int = 0x81) -> None:
        """A frame with this first byte, masked with zeros."""
        await self._me.pace()
        size = len(data)
        head = bytes([first, 0x80 | size]) if size < 126 else struct.pack(">BBH", first, 0xFE, size)
        self.writer.write(head + bytes(4) + data)
        async with asyncio.timeout(ANSWER_SECONDS):
            await self.writer.drain()

    async def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting for its answer; its id."""
        if self._me.throttle is not None:
            await self._me.throttle()
        self._id += 1
        self._me.tally.requests += 1
        if self.table is not None:
            params.setdefault("table", self.table)
        frame = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        await self.send_frame(json.dumps(frame, separators=(",", ":")).encode())
        return self._id

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request; raises Refused with the reason."""
        try:
            result = await self._call(method, **params)
        except Refused as refused:
            self._me.tally.refused[refused.reason] += 1
            raise
        self._me.tally.granted += 1
        return result

    async def call_with_retry(self, method: str, **params: Any) -> dict[str, Any]:
        """The same, repeated after the server's retry delay; raises Refused for another reason."""
        while True:
            try:
                return await self.call(method, **params)
            except Refused as refused:
                if refused.reason != "rate_limited" or not self._me.running():
                    raise
                await self._me.rest(refused.retry_after)

    async def command(self, method: str, **params: Any) -> dict[str, Any]:
        """`call_with_retry` with a new command id."""
        return await self.call_with_retry(method, cmd=secrets.token_hex(16), **params)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = await self.send(method, **params)
        answers = f'{{"jsonrpc":"2.0","id":{number},'.encode()
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                payload = await self.frame()
                if payload.startswith(answers):
                    break
                self._note(payload)
        answer = json.loads(payload)
        if "error" in answer:
            raise Refused(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _note(self, payload: bytes) -> None:
        if payload.startswith(b'{"jsonrpc":"2.0","method":"'):
            self.latest[payload[27 : payload.index(b'"', 27)].decode()] = payload

    async def frame(self) -> bytes:
        """The payload of the next data frame."""
        while True:
            first, size = await self._reader.readexactly(2)
            if size >= 126:
                size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8))
            payload = await self._reader.readexactly(size)
            if first == 0x81:
                return payload
            if first == 0x88:
                code = int.from_bytes(payload[:2])
                if self._me.throttle is not None and code == TOO_FAST:
                    self._me.throttle.on_refused(1.0)
                raise Closed(str(code))

    async def drop_frames(self) -> None:
        """Read and discard frames until the visit or the connection ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._me.until - time.monotonic())):
                while await self._reader.read(2**16):
                    await self._me.pace()

    # Tables of the attacker

    async def open(self, **params: Any) -> None:
        """Host a new table or, if none may be opened, one that was opened before."""
        try:
            opened = await self.call_with_retry("table.open", **params)
        except Refused:
            if not self._me.own:
                raise
            self.table, token = self._me.chance.choice(self._me.own)
            await self.call_with_retry("table.resume", token=token, after=0)
            return
        self.table = opened["table"]
        self._me.own.append((opened["table"], opened["host_token"]))
        del self._me.own[:-2000]

    async def host_own_table(self) -> bool:
        """Host the table that this worker opened first, so that it grows; whether it is new."""
        me = self._me
        if me.first_table is None:
            await self.open()
            me.first_table = me.own[-1]
            return True
        self.table, token = me.first_table
        await self.call_with_retry("table.resume", token=token, after=2**53 - 1)
        return False

    async def sit(self, name: str = "x", **params: Any) -> dict[str, Any]:
        return await self.call_with_retry("table.join", name=name, **params)

    async def round(self, **params: Any) -> int:
        """Open a round with the most cards allowed, after closing another one."""
        with suppress(Refused):
            await self.command("round.close")
        opened = await self.command("round.open", deck=BIG_DECK, **params)
        number: int = opened["round"]
        return number

    def digest(self, round_: int, k: int, seat: int, nonce: bytes) -> str:
        table = bytes.fromhex(self.table or "")
        return player_digest(table=table, round=round_, k=k, seat=seat, nonce=nonce).hex()


Attack = Callable[[Attacker], Any]
