"""One socket to the house, which is given up as soon as nobody seems to be at its other end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from dealer.client.questions import Patience
from dealer.errors import HouseUnreachable

SUBPROTOCOL = Subprotocol("dealer.v1")
FRAME_MAX = 16 * 2**20
CUT_OFF = 1006
CLOSING_SECONDS = 1.0


class Line:
    """A socket that is open; `send` queues a text, `read` hands over what comes until its end."""

    def __init__(self, socket: ClientConnection, patience: Patience) -> None:
        self._socket = socket
        self._patience = patience
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._heard = 0.0

    @classmethod
    async def open(cls, url: str, patience: Patience) -> Line:
        """A new socket; HouseUnreachable if it cannot be had."""
        try:
            socket = await dial(
                url,
                subprotocols=[SUBPROTOCOL],
                compression=None,
                max_size=FRAME_MAX,
                open_timeout=patience.open,
                ping_interval=None,
                close_timeout=CLOSING_SECONDS,
                proxy=None,
            )
        except InvalidURI as error:
            raise HouseUnreachable(f"{url} is no address of a house: {error}") from error
        except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
            reason = str(error) or type(error).__name__
            raise HouseUnreachable(f"The house at {url} does not answer: {reason}") from error
        return cls(socket, patience)

    def send(self, text: str) -> None:
        self._outbox.put_nowait(text)

    def abort(self) -> None:
        """Give it up at once."""
        self._socket.transport.abort()

    async def close(self) -> None:
        """Say goodbye, but do not wait long for an answer."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._socket.close()

    async def read(self, receive: Callable[[str | bytes], None]) -> int:
        """Give every frame to `receive`; the code that the socket was closed with."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_alive())]
        try:
            async for text in self._socket:
                self._heard = loop.time()
                receive(text)
        except ConnectionClosed:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # websockets waits in vain for a peer that has stopped reading: no polite end here.
            self.abort()
        return self._socket.close_code or CUT_OFF

    async def _write(self) -> None:
        try:
            while True:
                text = await self._outbox.get()
                async with asyncio.timeout(self._patience.answer):
                    await self._socket.send(text)
        except (TimeoutError, ConnectionClosed):
            self.abort()

    async def _keep_alive(self) -> None:
        loop, silence = asyncio.get_running_loop(), self._patience.silence
        try:
            while True:
                await asyncio.sleep(max(self._heard + silence - loop.time(), 0.01))
                if loop.time() - self._heard < silence:
                    continue
                async with asyncio.timeout(self._patience.answer):
                    await (await self._socket.ping())
                self._heard = loop.time()
        except (TimeoutError, ConnectionClosed):
            self.abort()
