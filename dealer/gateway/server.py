"""Server: opens the clients' and the operator's port, and drains gracefully.

    async with serve(service, host="127.0.0.1", port=8765) as gateway:
        ...                      # drains when the block ends

Draining: the server is no longer ready and accepts no connections; clients are notified when to
reconnect, spread over some seconds; running requests are finished; connections are closed with code
1012, and aborted if the client does not close in time. Nothing that was answered or pushed is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

from websockets.asyncio.server import Server
from websockets.http11 import Request, Response

from dealer.errors import ConfigurationError
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.gauges import counters, gauges, histograms
from dealer.gateway.http.connection import HttpConnection
from dealer.gateway.http.host_names import HostNames, name_of
from dealer.gateway.http.ops import Operations
from dealer.gateway.http.router import Router
from dealer.gateway.limits import Limits
from dealer.gateway.observe.loop_lag import LoopLagMonitor
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.ports import open_port, port_of, require_free
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.rpc.dispatcher import Dispatcher
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.ws.admission import (
    BEATS,
    ConnectionRegistry,
    is_socket,
    select_subprotocol,
    table_in,
)
from dealer.gateway.ws.client_ip import TrustedProxies
from dealer.gateway.ws.connection import PlayerConnection
from dealer.service import Service
from dealer.service.probe import Probe

__all__ = ["Gateway", "require_free", "serve"]

SPREAD_MS = 5_000
"""Interval over which the reconnections after a drain are spread."""

OPERATOR_SECONDS = 10.0
"""Timeout of a request to the operator's port, with its answer."""

STOPPING_SECONDS = 1.0
"""Timeout of HTTP answers that are still being made when the ports are closed."""

log = logging.getLogger(__name__)


class Gateway:
    """Serves one service on `host:port`, and its operator on `ops_host:ops_port`.

    Port 0 takes any free one; `ops_port` None opens none. `origins` are the web origins whose pages
    may connect besides the server's own (by default those of this machine), "*" for all.
    `trusted_proxies` are addresses and networks whose X-Forwarded-For is used. `host_names` are the
    names that requests may have in `Host`, besides localhost, any IP address, `host` and those in
    `origins`; the operator's port also accepts names without a dot, as of containers.
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
        clock = asyncio.get_running_loop().time
        self.metrics = Metrics(database=service.log.dialect)
        broadcaster = Broadcaster(service, limits=limits, metrics=self.metrics, clock=clock)
        self.context = GatewayContext(
            service=service,
            broadcaster=broadcaster,
            limits=limits,
            metrics=self.metrics,
            clock=clock,
            document=_openrpc_document,
        )
        names = [*host_names, host, *filter(None, map(name_of, origins or ()))]
        self.registry = ConnectionRegistry(
            self.context,
            origins=origins,
            proxies=TrustedProxies(trusted_proxies),
            hosts=HostNames(names),
        )
        self._router = Router(
            service,
            limits=limits,
            turns=broadcaster.turns,
            clock=clock,
            documents={"/openrpc.json": _openrpc, "/asyncapi.json": _asyncapi},
        )
        self.probe = Probe(service.log, service.stats, now=service.now, clock=clock)
        self._operations = Operations(
            self.context,
            self.probe,
            self.metrics,
            hosts=HostNames([*host_names, ops_host], single_label=True),
        )
        self._address = (host, port)
        self._ops_address = (ops_host, ops_port)
        self._server: Server | None = None
        self._ops_server: Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._lag = LoopLagMonitor(self.metrics.lag, clock=clock)
        self.metrics.counts = service.stats
        self.metrics.gauges |= gauges(self.context, self.registry, self._operations)
        self.metrics.counters |= counters(service)
        self.metrics.histograms |= histograms(service)

    async def start(self) -> None:
        """Open the ports; ConfigurationError if one cannot be opened."""
        limits = self.context.limits
        self._server = await open_port(
            *self._address,
            self._run_connection,
            self._answer,
            limits=limits,
            open_timeout=None,  # PlayerConnection has its own timers
            create_connection=partial(PlayerConnection, self.registry.callbacks, limits),
            admits=self.registry.admits,
            select_subprotocol=select_subprotocol,
        )
        loop = asyncio.get_running_loop()
        ops_host, ops_port = self._ops_address
        if ops_port is not None:
            await self.probe.check()
            self._tasks.append(loop.create_task(self.probe.run()))
            try:
                self._ops_server = await open_port(
                    ops_host,
                    ops_port,
                    _no_websocket,
                    self._operations.answer,
                    limits=limits,
                    create_connection=HttpConnection,
                    open_timeout=OPERATOR_SECONDS,
                )
            except ConfigurationError:
                await self._cancel_tasks()
                await self._close_ports()
                raise
        self._tasks.append(loop.create_task(self._keepalive()))
        self._lag.start()
        fields = {"address": f"{self._address[0]}:{self.port}"}
        if ops_port is not None:
            fields["operator"] = f"{ops_host}:{self.ops_port}"
        log.info("ready", extra={"fields": fields})

    @property
    def port(self) -> int:
        """The clients' port."""
        return port_of(self._server)

    @property
    def ops_port(self) -> int:
        """The operator's port."""
        return port_of(self._ops_server)

    async def drain(self) -> None:
        """Shut down gracefully within `limits.drain` seconds."""
        if self._server is None or self.context.draining:
            return
        context, connections = self.context, self.registry.connections
        loop, limits = asyncio.get_running_loop(), context.limits
        started_at = loop.time()
        deadline = started_at + limits.drain
        context.draining = context.broadcaster.turns.hurry = True
        context.service.feed.head.close()
        fields = {"connections": len(connections), "in_flight": context.in_flight}
        log.info("drain", extra={"fields": fields})
        self._server.close(close_connections=False)
        self._announce_drain()
        await _until(lambda: not context.in_flight, deadline - 2 * limits.closing)
        self.registry.close_all(
            self.registry.clients(),
            CloseCode.SERVICE_RESTART,
            "the server restarts: reconnect and resume",
        )
        await _until(lambda: not connections, deadline - 1)
        aborted = list(connections)
        for connection in aborted:
            connection.transport.abort()
        await self._cancel_tasks()
        self._lag.close()
        await context.broadcaster.close()
        await self._close_ports()
        seconds = round(loop.time() - started_at, 3)
        log.info("drained", extra={"fields": {"seconds": seconds, "cut": len(aborted)}})

    async def _answer(self, connection: PlayerConnection, request: Request) -> Response | None:
        self.registry.resolve_client_ip(connection, request)
        refusal = self.registry.check_handshake(connection, request)
        if refusal is not None or is_socket(request.path):
            return refusal
        connection.start_http_answer()
        answer = partial(self._router.answer, connection, request)
        return await metered(answer, connection.budget.cpu)

    async def _run_connection(self, connection: PlayerConnection) -> None:
        self.metrics.accepted += 1
        assert connection.request is not None
        session = Session(self.context, connection, table=table_in(connection.request.path))
        connection.handshake_done(Dispatcher(session))
        await connection.wait_closed()

    async def _keepalive(self) -> None:
        for beat in count():
            await asyncio.sleep(self.context.limits.keepalive / BEATS)
            self.registry.ping(beat)

    def _announce_drain(self) -> None:
        clients = self.registry.clients()
        for index, connection in enumerate(clients):
            delay = SPREAD_MS // 5 + SPREAD_MS * index // len(clients)
            notice = wire.notification("session.drain", r.Drain(reconnect_in_ms=delay))
            connection.write(wire.text_frame(notice))

    async def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _close_ports(self) -> None:
        for server in (self._server, self._ops_server):
            if server is not None:
                server.close()
                # An HTTP answer that does not end is not waited for.
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOPPING_SECONDS):
                        await server.wait_closed()


@asynccontextmanager
async def serve(service: Service, **settings: Any) -> AsyncIterator[Gateway]:
    """A running `Gateway` with these settings; it drains when the block ends."""
    gateway = Gateway(service, **settings)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.drain()


# The schema is imported, and its documents are made, on their first request.


def _openrpc_document() -> r.Document:
    from dealer.gateway.schema import document

    return document()


def _openrpc() -> bytes:
    from dealer.gateway.schema import openrpc

    return openrpc()


def _asyncapi() -> bytes:
    from dealer.gateway.schema import asyncapi

    return asyncapi()


async def _no_websocket(connection: Any) -> None:
    """No handshake reaches the operator's port: every request there gets an HTTP answer."""


async def _until(condition: Callable[[], bool], deadline: float) -> None:
    """Wait for a condition, at most until the loop's clock shows `deadline`."""
    loop = asyncio.get_running_loop()
    while not condition() and loop.time() < deadline:  # noqa: ASYNC110  a few times in a lifetime
        await asyncio.sleep(0.01)
