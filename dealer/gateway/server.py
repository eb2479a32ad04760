"""The house opens: a port for guests, one for the operator, and an orderly closing time.

    async with serve(service, host="127.0.0.1", port=8765) as gateway:
        ...                      # until it is time to go; then it drains

Drain: no longer ready, no new connections, everybody is told when to come back (not all at once),
what is under way is finished, the connections are closed with 1012, and whoever does not close
theirs is cut off. Nothing that was answered or shown can be lost by it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

from websockets.asyncio.server import Server
from websockets.asyncio.server import serve as listen
from websockets.http11 import Request, Response

from dealer.errors import SetupError
from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.commands import WISHES
from dealer.gateway.connection import GuestConnection
from dealer.gateway.door import BEATS, GOING, Door, is_socket, select_subprotocol, table_in
from dealer.gateway.floor import Floor
from dealer.gateway.hops import Hops
from dealer.gateway.host_names import HostNames, name_of
from dealer.gateway.http_connection import HttpConnection
from dealer.gateway.lag import Lag
from dealer.gateway.limits import Limits
from dealer.gateway.metrics import Metrics
from dealer.gateway.operations import Operations
from dealer.gateway.pages import Pages
from dealer.gateway.pump import Pump
from dealer.gateway.questions import QUESTIONS
from dealer.gateway.turns import metered
from dealer.service import Service

RESTART = GOING
SPREAD_MS = 5_000
"""Over how long the reconnections after a drain are spread."""

OPERATOR_SECONDS = 10.0
"""Within which a request to the operator's port has come and is answered."""

STOPPING_SECONDS = 1.0
"""How long the answers that nobody is there for any more may take to end."""

_PARAMS = {name: method.params for name, method in (WISHES | QUESTIONS).items()}

log = logging.getLogger(__name__)

# Debug messages of websockets show frames, and frames hold tokens: never below INFO.
_quiet = logging.getLogger("dealer.gateway.socket")
_quiet.setLevel(logging.WARNING)


class Gateway:
    """Serves one service on `host:port`, and its operator on `ops_host:ops_port`.

    Port 0 takes any free one; `ops_port` None opens none. `origins` are the web origins whose
    pages may connect beside the house's own (by default those of this machine), "*" for all.
    `trusted_proxies` are addresses and networks whose X-Forwarded-For is believed. `host_names` are
    the names that requests may come under, beside localhost, any IP address, `host` and those in
    `origins`; the operator's port also takes names without a dot, as of containers.
    """

    def __init__(
        self,
        service: Service,
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        ops_host: str = "127.0.0.1",
        ops_port: int | None = None,
        limits: Limits | None = None,
        origins: Sequence[str] | None = None,
        trusted_proxies: Sequence[str] = (),
        host_names: Sequence[str] = (),
    ) -> None:
        limits = limits or Limits()
        loop = asyncio.get_running_loop()
        self.metrics = Metrics()
        pump = Pump(service, limits=limits, metrics=self.metrics, clock=loop.time)
        self.floor = Floor(
            service=service,
            pump=pump,
            limits=limits,
            metrics=self.metrics,
            wishes=WISHES,
            questions=QUESTIONS,
            reader=wire.Reader(_PARAMS),
            clock=loop.time,
        )
        names = [*host_names, host, *filter(None, map(name_of, origins or ()))]
        self.door = Door(
            self.floor, origins=origins, hops=Hops(trusted_proxies), hosts=HostNames(names)
        )
        self._pages = Pages(service)
        self._operations = Operations(
            service,
            self.metrics,
            draining=lambda: self.floor.draining,
            hosts=HostNames([*host_names, ops_host], single_label=True),
        )
        self._address = (host, port)
        self._ops_address = (ops_host, ops_port)
        self._server: Server | None = None
        self._ops_server: Server | None = None
        self._beat: asyncio.Task[None] | None = None
        self._lag = Lag(self.metrics.lag, clock=loop.time)
        self._count(service)

    async def start(self) -> None:
        """Open the ports; SetupError if one cannot be had."""
        self._server = await self._listen(
            *self._address,
            self._guest,
            self._answer,
            open_timeout=None,  # the connection has timers of its own, see connection.py
            create_connection=partial(GuestConnection, self.door),
            select_subprotocol=select_subprotocol,
        )
        ops_host, ops_port = self._ops_address
        if ops_port is not None:
            try:
                self._ops_server = await self._listen(
                    ops_host,
                    ops_port,
                    _nobody,
                    self._operations.answer,
                    create_connection=HttpConnection,
                    open_timeout=OPERATOR_SECONDS,
                )
            except SetupError:
                await self._stop_listening()
                raise
        self._beat = asyncio.get_running_loop().create_task(self._keepalive())
        self._lag.start()
        where = {"address": f"{self._address[0]}:{self.port}"}
        if ops_port is not None:
            where["operator"] = f"{ops_host}:{self.ops_port}"
        log.info("ready", extra={"told": where})

    @property
    def port(self) -> int:
        """The port that guests reach."""
        return _port(self._server)

    @property
    def ops_port(self) -> int:
        return _port(self._ops_server)

    async def drain(self) -> None:
        """Close in order, within `limits.drain` seconds."""
        if self._server is None or self.floor.draining:
            return
        loop, limits = asyncio.get_running_loop(), self.floor.limits
        begun = loop.time()
        deadline = begun + limits.drain
        self.floor.draining = self.floor.pump.turns.hurry = True
        told = {"connections": len(self.door.connections), "in_flight": self.floor.in_flight}
        log.info("drain", extra={"told": told})
        self._server.close(close_connections=False)
        self._announce()
        await _until(lambda: not self.floor.in_flight, deadline - 2 * limits.closing)
        self.door.say(self.door.guests(), RESTART, "the house restarts: reconnect and resume")
        await _until(lambda: not self.door.connections, deadline - 1)
        cut = list(self.door.connections)
        for connection in cut:
            connection.transport.abort()
        if self._beat is not None:
            self._beat.cancel()
        self._lag.close()
        await self.floor.pump.close()
        await self._operations.close()
        await self._stop_listening()
        took = round(loop.time() - begun, 3)
        log.info("drained", extra={"told": {"seconds": took, "cut": len(cut)}})

    # The port for guests

    async def _listen(
        self,
        host: str,
        port: int,
        handler: Callable[[Any], Awaitable[None]],
        answer: Callable[[Any, Request], Awaitable[Response | None]],
        **more: Any,
    ) -> Server:
        limits = self.floor.limits
        try:
            return await listen(
                handler,
                host,
                port,
                process_request=answer,
                compression=None,
                server_header=None,
                ping_interval=None,
                close_timeout=limits.closing,
                max_size=limits.message,
                max_queue=None,
                write_limit=limits.buffer,
                logger=_quiet,
                **more,
            )
        except OSError as error:
            raise SetupError(_cannot_listen(host, port, error)) from None

    async def _answer(self, connection: GuestConnection, request: Request) -> Response | None:
        self.door.recognise(connection, request)
        refusal = self.door.refuse(connection, request)
        if refusal is not None or is_socket(request.path):
            return refusal
        connection.answering()
        answer = partial(self._pages.answer, connection, request)
        return await metered(answer, connection.budget.cpu)

    async def _guest(self, connection: GuestConnection) -> None:
        self.metrics.accepted += 1
        assert connection.request is not None
        connection.opened(table_in(connection.request.path))
        await connection.wait_closed()

    async def _keepalive(self) -> None:
        for beat in count():
            await asyncio.sleep(self.floor.limits.keepalive / BEATS)
            self.door.ping(beat)

    # Closing time

    def _announce(self) -> None:
        guests = self.door.guests()
        for place, connection in enumerate(guests):
            after = SPREAD_MS // 5 + SPREAD_MS * place // len(guests)
            said = wire.notification("session.drain", r.Drain(reconnect_in_ms=after))
            connection.write(wire.text_frame(said))

    async def _stop_listening(self) -> None:
        for server in (self._server, self._ops_server):
            if server is not None:
                server.close()
                # A page whose answer never comes is not waited for.
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOPPING_SECONDS):
                        await server.wait_closed()

    def _count(self, service: Service) -> None:
        floor, door, counts = self.floor, self.door, service.counts
        self.metrics.counts = counts
        self.metrics.gauges |= {
            "dealer_connections": ("Connections that are open.", lambda: len(door.connections)),
            "dealer_addresses": (
                "Client addresses whose budgets are remembered.",
                lambda: len(floor.budgets),
            ),
            "dealer_tables_resident": ("Tables in memory.", lambda: len(service.memory)),
            "dealer_tables_bytes": (
                "Bytes that tables in memory take, estimated.",
                lambda: service.memory.bytes,
            ),
            "dealer_tables_asleep": (
                "Tables out of memory whose shuffle waits.",
                lambda: len(service.wakeups),
            ),
            "dealer_disk_free_bytes": (
                "Free bytes of the database's disk; NaN where it is not this machine's.",
                lambda: service.closures.free,
            ),
            "dealer_requests_in_flight": (
                "Requests not answered yet.",
                lambda: floor.in_flight,
            ),
            "dealer_appends_waiting": (
                "Appends that wait for their commit.",
                lambda: service.log.waiting,
            ),
            "dealer_draining": ("1 while the house closes.", lambda: floor.draining),
            "dealer_database_trouble": (
                "1 since a batch could not be written, until one is.",
                lambda: counts.trouble,
            ),
        }


@asynccontextmanager
async def serve(service: Service, **settings: Any) -> AsyncIterator[Gateway]:
    """A gateway with these settings while the block runs; it drains when the block ends."""
    gateway = Gateway(service, **settings)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.drain()


async def require_free(*addresses: tuple[str, int]) -> None:
    """Raise SetupError unless each (host, port) can be listened on; port 0 always can.

    Asked before anything else is opened, so that a house that cannot open leaves nothing behind.
    """
    loop = asyncio.get_running_loop()
    for host, port in addresses:
        try:
            server = await loop.create_server(asyncio.Protocol, host, port)
        except OSError as error:
            raise SetupError(_cannot_listen(host, port, error)) from None
        server.close()
        await server.wait_closed()


async def _nobody(connection: Any) -> None:
    """Nobody opens a WebSocket on the operator's port: every request there gets a page."""


async def _until(truth: Callable[[], bool], deadline: float) -> None:
    """Wait for something that ends by itself, or for the loop's clock to show `deadline`."""
    loop = asyncio.get_running_loop()
    while not truth() and loop.time() < deadline:  # noqa: ASYNC110  a few times in a lifetime
        await asyncio.sleep(0.01)


def _port(server: Server | None) -> int:
    if server is None or not server.sockets:
        raise SetupError("This port is not open.")
    port: int = next(iter(server.sockets)).getsockname()[1]
    return port


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use: another program, or another dealer, listens there. "
            "Stop it, or choose another port (--port, --ops-port)."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be opened by this user; choose one above 1023."
    return f"Port {port} of {host!r} cannot be opened: {error.strerror or error}."
