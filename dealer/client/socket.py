"""One WebSocket to the server, which is aborted when the server no longer answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from dealer.client.requests import RetryPolicy
from dealer.errors import HouseUnreachable, SessionEnded

SUBPROTOCOL = Subprotocol("dealer.v1")
FRAME_MAX = 16 * 2**20
ABNORMAL_CLOSURE = 1006
CLOSING_SECONDS = 1.0
OK, UNAUTHORIZED, NOT_FOUND = 200, 401, 404
KEY_REFUSED = 4401

_SUCH = "its address is like ws://127.0.0.1:8080/ws, or wss://dealer.example/ws."

FINAL = {
    KEY_REFUSED: "The server no longer accepts this client's key.",
    4403: "The server does not admit this client.",
    4408: "The server closed the connection because no request came in time.",
    4409: "A newer connection has taken over this seat.",
    1009: "The server closed the connection because a message was too long.",
}
"""Close codes after which the client does not reconnect, and what each means."""


class Socket:
    """An open WebSocket: `send` queues a text, `read` receives frames until it is closed."""

    def __init__(self, socket: ClientConnection, patience: RetryPolicy) -> None:
        self._socket = socket
        self._patience = patience
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._received_at = 0.0

    @classmethod
    async def open(cls, url: str, patience: RetryPolicy, key: str | None = None) -> Socket:
        """Open a socket, with a service key; HouseUnreachable if that fails.

        Raises SessionEnded where the server does not accept the key.
        """
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
                additional_headers=None if key is None else {"Authorization": f"Bearer {key}"},
            )
        except InvalidURI as error:
            raise HouseUnreachable(f"{url} is not the address of a server: {_SUCH}") from error
        except InvalidStatus as error:
            if key is not None and error.response.status_code == UNAUTHORIZED:
                sentence = "The server does not accept this service key."
                raise SessionEnded(sentence, code=KEY_REFUSED) from None
            sentence = f"The server at {url} does not answer: {error}."
            if error.response.status_code in (OK, NOT_FOUND):
                sentence = f"There is no WebSocket at {url}: {_SUCH}"
            raise HouseUnreachable(sentence) from error
        except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
            reason = str(error) or "no answer in time"
            raise HouseUnreachable(f"The server at {url} does not answer: {reason}") from error
        return cls(socket, patience)

    def send(self, text: str) -> None:
        """Queue a text frame."""
        self._outbox.put_nowait(text)

    def abort(self) -> None:
        """Drop the connection immediately."""
        self._socket.transport.abort()

    async def close(self) -> None:
        """Close the connection, with a short timeout for the closing handshake."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._socket.close()

    async def read(self, receive: Callable[[str | bytes], None]) -> int:
        """Pass every frame to `receive`; the close code."""
        loop = asyncio.get_running_loop()
        self._received_at = loop.time()
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_alive())]
        try:
            async for text in self._socket:
                self._received_at = loop.time()
                receive(text)
        except ConnectionClosed:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # websockets would wait for a peer that has stopped reading: no closing handshake here.
            self.abort()
        return self._socket.close_code or ABNORMAL_CLOSURE

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
                await asyncio.sleep(max(self._received_at + silence - loop.time(), 0.01))
                if loop.time() - self._received_at < silence:
                    continue
                async with asyncio.timeout(self._patience.answer):
                    await (await self._socket.ping())
                self._received_at = loop.time()
        except (TimeoutError, ConnectionClosed):
            self.abort()
