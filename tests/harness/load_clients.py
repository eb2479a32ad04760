"""Clients that send batches of frames and wait for all answers, with and without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.session.context import GatewayContext
from dealer.gateway.session.dispatcher import Dispatcher
from dealer.gateway.session.session import Session
from dealer.service.identity.service_keys import ServiceKey

HELD = 32
"""Queued requests of a session above which no more are sent."""

ANSWER = b'{"jsonrpc":"2.0","id":'


class SocketlessClient:
    """A client without a socket: it stores the frames that the session writes."""

    address = ""
    paused = False

    def __init__(self, context: GatewayContext) -> None:
        self.context = context
        self.answers: list[bytes] = []
        self.ended: int | None = None
        self.budget = context.budgets.client("", context.clock())
        self.dispatcher = Dispatcher(Session(context, self))

    def charge_to(self, budget: ClientBudget, key: ServiceKey) -> None:
        self.budget = budget

    def write(self, data: bytes) -> None:
        for text in texts(data):
            if text.startswith(ANSWER):
                self.answers.append(text)

    async def drained(self) -> bool:
        return self.ended is None

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None: ...

    def close_with(self, code: int, reason: str) -> None:
        if self.ended is None:
            self.ended = code
            self.dispatcher.close()

    async def deliver(self, frames: list[bytes]) -> list[bytes]:
        for frame in frames:
            self.dispatcher.receive(frame)
            if len(self.dispatcher.queue.waiting or ()) > HELD:
                await until(lambda: len(self.dispatcher.queue.waiting or ()) <= HELD)
        await until(
            lambda: not (self.context.in_flight or self.dispatcher.queue.waiting is not None)
        )
        answers, self.answers = self.answers, []
        return answers

    async def leave(self) -> None:
        self.close_with(1000, "")


class SocketClient:
    """The same over a WebSocket connection."""

    def __init__(self, context: GatewayContext, socket: ClientConnection) -> None:
        self.context = context
        self.ended: int | None = None
        self._socket = socket

    async def deliver(self, frames: list[bytes]) -> list[bytes]:
        answers: list[bytes] = []
        try:
            for frame in frames:
                await self._socket.send(frame, text=True)
            await self._echo(answers)
            await until(lambda: not self.context.in_flight)
            await self._echo(answers)
        except ConnectionClosed:
            self.ended = self._socket.close_code or 1006
        return answers

    async def _echo(self, answers: list[bytes]) -> None:
        """Read until the answer to a ping arrives: it is queued after the earlier requests."""
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
    """Poll until the condition holds in two consecutive iterations of the loop.

    A task that was just created is only counted from the next iteration on.
    """
    in_a_row = 0
    while in_a_row < 2:
        in_a_row = in_a_row + 1 if truth() else 0
        await asyncio.sleep(0)


def texts(data: bytes) -> list[bytes]:
    """The payloads of concatenated unfragmented frames."""
    found, at = [], 0
    while at < len(data):
        length, at = data[at + 1], at + 2
        if length > 125:
            size = 2 if length == 126 else 8
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        found.append(data[at : at + length])
        at += length
    return found
