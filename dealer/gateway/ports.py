"""Listening ports: opens them with the server's limits, and explains why one cannot be opened."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from websockets.asyncio.server import Server, ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from dealer.errors import ConfigurationError
from dealer.gateway.http.responses import without_body
from dealer.gateway.limits import Limits
from dealer.gateway.listener import Listener, listening_sockets

# Debug messages of websockets contain frames, and frames contain tokens.
_quiet = logging.getLogger("dealer.gateway.socket")
_quiet.setLevel(logging.WARNING)


async def open_port(
    host: str,
    port: int,
    handler: Callable[[Any], Awaitable[None]],
    process_request: Callable[[Any, Request], Awaitable[Response | None]],
    *,
    limits: Limits,
    create_connection: Callable[..., ServerConnection],
    open_timeout: float | None,
    admits: Callable[[str], bool] = lambda address: True,
    select_subprotocol: Callable[[ServerProtocol, Sequence[Subprotocol]], Subprotocol | None]
    | None = None,
) -> Server:
    """Listen for HTTP and WebSocket connections; ConfigurationError if the port cannot be opened.

    `admits` is given an IP address and returns whether a connection of it is accepted.
    `process_request` answers a request, or returns None for a handshake; the answer to HEAD is sent
    without its body. `handler` runs after the handshake. The other arguments are those of
    `websockets.asyncio.server.serve`.
    """

    async def answer(connection: Any, request: Request) -> Response | None:
        found = await process_request(connection, request)
        return without_body(found) if found is not None and request.method == "HEAD" else found

    server = listen(
        handler,
        process_request=answer,
        compression=None,
        server_header=None,
        open_timeout=open_timeout,
        logger=_quiet,
    )

    def connection() -> ServerConnection:
        protocol = ServerProtocol(
            select_subprotocol=select_subprotocol, max_size=limits.message, logger=_quiet
        )
        return create_connection(
            protocol,
            server,
            ping_interval=None,
            close_timeout=limits.closing,
            max_queue=None,
            write_limit=limits.buffer,
        )

    async def create_server() -> Listener:
        return Listener(await listening_sockets(host, port), connection, admits)

    server.create_server = cast("Any", create_server)
    try:
        return await server
    except OSError as error:
        raise ConfigurationError(_cannot_listen(host, port, error)) from None


async def require_free(*addresses: tuple[str, int]) -> None:
    """Raise ConfigurationError unless each (host, port) can be opened; port 0 always can.

    To be called before anything else is opened, so that a failed start leaves nothing behind.
    """
    loop = asyncio.get_running_loop()
    for host, port in addresses:
        try:
            server = await loop.create_server(asyncio.Protocol, host, port)
        except OSError as error:
            raise ConfigurationError(_cannot_listen(host, port, error)) from None
        server.close()
        await server.wait_closed()


def port_of(server: Server | None) -> int:
    """The port that a server listens on; ConfigurationError if it is not open."""
    if server is None or not server.sockets:
        raise ConfigurationError("This port is not open.")
    port: int = next(iter(server.sockets)).getsockname()[1]
    return port


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use: another program, or another dealer, listens there. "
            "Stop it, or choose another port (--port, --service-port, --ops-port)."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be opened by this user; choose one above 1023."
    return f"Port {port} of {host!r} cannot be opened: {error.strerror or error}."
