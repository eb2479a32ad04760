"""Guests who hand in frames by the hundred and wait for all the answers, on a socket or on none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from dealer.gateway.floor import Floor
from dealer.gateway.session import Session

HELD = 32
"""Requests that may wait behind one that takes a while before no more are given."""

ANSWER = b'{"jsonrpc":"2.0","id":'


class Paper:
    """A guest without a socket: what the house writes is kept."""

    address = ""
    paused = False

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.answers: list[bytes] = []
        self.ended: int | None = None
        self.budget = floor.budgets.client("", floor.clock())
        self.session = Session(floor, self)

    def write(self, data: bytes) -> None:
        for text in texts(data):
            if text.startswith(ANSWER):
                self.answers.append(text)

    async def writable(self) -> bool:
        return self.ended is None

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def end(self, code: int, reason: str) -> None:
        if self.ended is None:
            self.ended = code
            self.session.close()

    async def deliver(self, frames: list[bytes]) -> list[bytes]:
        for frame in frames:
            self.session.receive(frame)
            if len(self.session._held or ()) > HELD:
                await until(lambda: len(self.session._held or ()) <= HELD)
        await until(lambda: not (self.floor.in_flight or self.session._held is not None))
        answers, self.answers = self.answers, []
        return answers

    async def leave(self) -> None:
        self.end(1000, "")


class Wire:
    """The same with a socket."""

    def __init__(self, floor: Floor, socket: ClientConnection) -> None:
        self.floor = floor
        self.ended: int | None = None
        self._socket = socket

    async def deliver(self, frames: list[bytes]) -> list[bytes]:
        answers: list[bytes] = []
        try:
            for frame in frames:
                await self._socket.send(frame, text=True)
            await self._echo(answers)
            await until(lambda: not self.floor.in_flight)
            await self._echo(answers)
        except ConnectionClosed:
            self.ended = self._socket.close_code or 1006
        return answers

    async def _echo(self, answers: list[bytes]) -> None:
        """Read until the answer to a ping comes back; it waits its turn behind what was asked."""
        await self._socket.send('{"jsonrpc":"2.0","id":"echo","method":"ping"}')
        while True:
            text = await self._socket.recv(decode=False)
            assert isinstance(text, bytes)
            if text.startswith(ANSWER + b'"echo"'):
                return
            if text.startswith(ANSWER):
                answers.append(text)

    async def leave(self) -> None:
        await self._socket.close()


async def until(truth: Callable[[], bool]) -> None:
    """Wait for what nobody tells of, so that it holds in two turns of the loop.

    A task that has only just been begun is counted from the next turn on.
    """
    in_a_row = 0
    while in_a_row < 2:
        in_a_row = in_a_row + 1 if truth() else 0
        await asyncio.sleep(0)


def texts(data: bytes) -> list[bytes]:
    """The payloads of whole frames that lie one behind the other."""
    found, at = [], 0
    while at < len(data):
        length, at = data[at + 1], at + 2
        if length > 125:
            size = 2 if length == 126 else 8
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        found.append(data[at : at + length])
        at += length
    return found
