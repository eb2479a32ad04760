"""Listening ports: connections are accepted a few at a time, those of a flood closed at once.

A loop's own server accepts everything that waits in one step of the loop, and makes a transport and
a protocol for each: a client that opens 400 connections at once would delay every other one's draw
by 40 ms. Here a step accepts at most `ACCEPTED_AT_ONCE`, and one that is refused costs an `accept`
and a `close`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from dealer.errors import ConfigurationError

ACCEPTED_AT_ONCE = 4
"""Connections accepted in one step of the event loop."""

BACKLOG = 100
"""Connections that the operating system accepts while the process is busy."""

RETRY_SECONDS = 1.0
"""Seconds without accepting after the process ran out of file descriptors or memory."""

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, which leaves no TIME_WAIT here

log = logging.getLogger(__name__)


class Listener:
    """Listens on these sockets.

    `admits` is given the client's IP address and returns whether a connection of it is accepted.
    `factory` makes the protocol of an accepted one.
    """

    def __init__(
        self,
        listening: Iterable[socket.socket],
        factory: Callable[[], asyncio.BaseProtocol],
        admits: Callable[[str], bool] = lambda address: True,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._factory = factory
        self._admits = admits
        self._connecting: set[asyncio.Task[Any]] = set()
        self.sockets = tuple(listening)
        for socket_ in self.sockets:
            self._resume(socket_)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self.sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                client, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("cannot accept connections", extra={"fields": {"error": str(error)}})
                self._loop.remove_reader(listening)
                self._loop.call_later(RETRY_SECONDS, self._resume, listening)
                return
            if self._admits(address[0]):
                task = self._loop.create_task(self._connect(client))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)
            else:
                with suppress(OSError):
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                client.close()

    async def _connect(self, client: socket.socket) -> None:
        try:
            client.setblocking(False)
            await self._loop.connect_accepted_socket(self._factory, client)
        except OSError:  # the client is gone
            client.close()

    @property
    def port(self) -> int:
        """The port; ConfigurationError once it is closed."""
        if not self.sockets:
            raise ConfigurationError("This port is not open.")
        port: int = self.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening; accepted connections stay open."""
        listening, self.sockets = self.sockets, ()
        for socket_ in listening:
            self._loop.remove_reader(socket_)
            socket_.close()

    async def wait_closed(self) -> None:
        """Wait for accepted connections that have no transport yet."""
        await asyncio.gather(*self._connecting, return_exceptions=True)


async def require_free(ports: Iterable[tuple[str, int, str]]) -> None:
    """Raise ConfigurationError, a sentence for each port that cannot be opened; 0 always can.

    Each is a host, a port and the flag that chooses the port. To be called before anything else is
    opened, so that a failed start leaves nothing behind.
    """
    opened: list[socket.socket] = []
    faults: list[str] = []
    for host, port, flag in ports:
        try:
            opened += await listening_sockets(host, port, flag=flag)
        except ConfigurationError as error:
            faults.append(str(error))
    for socket_ in opened:
        socket_.close()
    if faults:
        raise ConfigurationError(" ".join(faults))


async def listening_sockets(host: str, port: int, *, flag: str = "") -> list[socket.socket]:
    """Sockets that listen on every address of `host`; ConfigurationError if one cannot be opened.

    The loop's own server finds the addresses and binds them, but never listens.
    """
    loop = asyncio.get_running_loop()
    try:
        bound = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    except OSError as error:
        raise ConfigurationError(_cannot_listen(host, port, error, flag)) from None
    listening = [socket.socket(fileno=os.dup(socket_.fileno())) for socket_ in bound.sockets]
    bound.close()
    for socket_ in listening:
        socket_.setblocking(False)
        socket_.listen(BACKLOG)
    return listening


def _cannot_listen(host: str, port: int, error: OSError, flag: str) -> str:
    choose = f" with {flag}" if flag else ""
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use: another program, or another dealer, listens there. "
            f"Stop it, or choose another one{choose}."
        )
    if error.errno == errno.EACCES:
        return (
            f"Port {port} of {host} may not be opened by this user; choose one above 1023{choose}."
        )
    return f"Port {port} of {host!r} cannot be opened: {error.strerror or error}."
