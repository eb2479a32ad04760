"""Server: opens the clients' and the operator's port, and drains gracefully.

    async with serve(service, host="127.0.0.1", port=8765) as gateway:
        ...                      # drains when the block ends

Draining: the server is no longer ready and accepts no connections; clients are notified when to
reconnect, spread over some seconds; running requests are finished; connections without one are
closed at once, WebSockets with code 1012, and aborted if the client does not close in time. Nothing
that was answered or pushed is lost.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from websockets.http11 import Request

from dealer.errors import ConfigurationError
from dealer.gateway import clients
from dealer.gateway.admission import Admission
from dealer.gateway.decks.endpoint import DecksEndpoint
from dealer.gateway.gauges import counters, gauges, histograms
from dealer.gateway.limits import Limits
from dealer.gateway.net.host_names import HostNames, name_of
from dealer.gateway.net.http import ROOT
from dealer.gateway.net.listener import Listener, listening_sockets
from dealer.gateway.net.proxies import TrustedProxies
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.ops import Operations, OperatorPort, operator_hosts
from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.pages.router import Router
from dealer.gateway.pages.static_files import PLAIN_APPEARANCE, StaticFiles
from dealer.gateway.posts import PATH as RPC_PATH
from dealer.gateway.posts import RpcEndpoint
from dealer.gateway.presence.absence import HostAbsence
from dealer.gateway.session.context import GatewayContext
from dealer.packs.catalogue import Catalogue, shipped
from dealer.service import Service
from dealer.service.operations.probe import Probe

if TYPE_CHECKING:
    from dealer.gateway.identity import Issuer

LAG_SECONDS = 0.5
"""Seconds between two measurements of the event loop's lag."""

FAREWELL = 1.0
"""Seconds in which clients answer a close frame, and read what they have not read yet."""

_DECKS = ("/api/", "/static/img/")

CLIENTS, SERVICES, OPERATOR = "address", "services", "operator"
"""The ports, by the names of their addresses in the log."""

log = logging.getLogger(__name__)


class _Port(NamedTuple):
    """The address of a port, which is not opened without a number, and what listens on it."""

    host: str
    port: int | None
    listener: Callable[[list[socket.socket]], Listener]


class Gateway:
    """Serves one service on `host:port`, and its operator on `ops_host:ops_port`.

    Port 0 takes any free one; `ops_port` None opens none. An `operator` port that is open already
    takes its place. `service_host:service_port`, None for none, accepts connections with a service
    key only. `open_tables`, `lobby` and `finished` are `anyone` or `service`: who may open tables,
    list the open ones, and list the closed ones.
    `origins` are the web origins whose pages may connect besides the server's own (by default those
    of this machine), "*" for all.
    `trusted_proxies` are addresses and networks of proxies whose headers are used. `host_names` are
    the names that requests may have in `Host`, besides localhost, any IP address, `host` and those
    in `origins`; the operator's port also accepts names without a dot, as of containers.
    `frame_ancestors` are the origins whose pages may show this server's pages in a frame, with the
    `appearance` that its operator gave them. `catalogue` has the packs of cards and the presets of
    games, by default those of this version. `issuer` verifies the JWTs of the users who take seats
    by one. `host_absent_seconds` is how long a host may be absent before another player becomes
    host; 0 means never. `decks` switches the simple REST interface on. `path` is the path under
    which clients reach the server, such as `/cards/`; requests may come with and without it.
    """

    def __init__(
        self,
        service: Service,
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        ops_host: str = "127.0.0.1",
        ops_port: int | None = None,
        operator: OperatorPort | None = None,
        service_host: str = "127.0.0.1",
        service_port: int | None = None,
        open_tables: str = "anyone",
        lobby: str = "anyone",
        finished: str = "anyone",
        limits: Limits | None = None,
        origins: Sequence[str] | None = None,
        trusted_proxies: Sequence[str] = (),
        host_names: Sequence[str] = (),
        frame_ancestors: Sequence[str] = (),
        appearance: Appearance = PLAIN_APPEARANCE,
        catalogue: Catalogue | None = None,
        issuer: Issuer | None = None,
        host_absent_seconds: float = 0.0,
        decks: bool = True,
        path: str = ROOT,
    ) -> None:
        limits = limits or Limits()
        clock, catalogue = asyncio.get_running_loop().time, catalogue or shipped()
        self.metrics = Metrics(database=service.log.dialect)
        self.context = GatewayContext(
            service=service,
            limits=limits,
            metrics=self.metrics,
            clock=clock,
            document=partial(_described, "document", path),
            catalogue=catalogue,
            issuer=issuer,
            players_open=open_tables == "anyone",
            players_list=lobby == "anyone",
            players_list_closed=finished == "anyone",
        )
        names = [*host_names, host, *filter(None, map(name_of, origins or ()))]
        self.registry = clients.ConnectionRegistry(self.context)
        self._admission = admission = Admission(
            self.registry,
            origins=origins,
            proxies=TrustedProxies(trusted_proxies),
            hosts=HostNames(names),
        )
        web = StaticFiles(appearance)
        self._rpc = RpcEndpoint(self.context, admission.check_post)
        self._socket = clients.WebSocketEndpoint(self.context, admission.check_socket)
        self._decks = DecksEndpoint(self.context, admission.check_decks, web, path=path)
        self._with_decks = decks
        self._router = Router(
            self.context,
            admission.check_page,
            documents={
                "/openrpc.json": partial(_described, "openrpc", path),
                "/asyncapi.json": partial(_described, "asyncapi", path),
                **catalogue.documents(),
            },
            catalogue=catalogue,
            frame_ancestors=frame_ancestors,
            appearance=appearance,
            web=web,
            path=path,
        )
        self.probe = Probe(service.log, service.stats, now=service.now, clock=clock)
        operations = Operations(self.context, self.probe)
        self._operator = operator or OperatorPort(operator_hosts(host_names, ops_host))
        connection = partial(clients.ClientConnection, self.registry, self._endpoint_of, path=path)
        of_keys = partial(connection, keys_only=True)
        listener = partial(Listener, admits=admission.admits)
        self._ports = {
            CLIENTS: _Port(host, port, partial(listener, factory=connection)),
            SERVICES: _Port(service_host, service_port, partial(listener, factory=of_keys)),
        }
        self._ops = (ops_host, ops_port, limits)
        self._operations = operations
        self._listeners: dict[str, Listener] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._hosts = HostAbsence(service, self.context.absences, seconds=host_absent_seconds)
        service.service_keys.on_revoked(self.registry.end_service)
        self.metrics.counts = service.stats
        self.metrics.gauges |= gauges(self.context, self.registry, operations)
        self.metrics.counters |= counters(service)
        self.metrics.histograms |= histograms(service)

    async def start(self) -> None:
        """Open the ports; ConfigurationError if one cannot be opened."""
        fields = {}
        try:
            for name, (host, port, listener) in self._ports.items():
                if port is not None:
                    self._listeners[name] = listener(await listening_sockets(host, port))
                    fields[name] = f"{host}:{self._port(name)}"
            if self._operator.listener is None:
                await self._operator.open(*self._ops)
            if self._operator.listener is not None:
                await self.probe.check()  # so that its first answer is right
                self._operator.operations = self._operations
                self._listeners[OPERATOR] = self._operator.listener
                fields[OPERATOR] = f"{self._ops[0]}:{self._port(OPERATOR)}"
        except ConfigurationError:
            await self._close_ports()
            raise
        works = [self._keepalive(), self._hosts.run(), self._measure_lag()]
        if OPERATOR in self._listeners:
            works.append(self.probe.run())
        self._tasks += map(asyncio.get_running_loop().create_task, works)
        log.info("ready", extra={"fields": fields})

    def _endpoint_of(self, request: Request) -> clients.Endpoint:
        path = request.path
        if clients.is_socket(path) and request.method != "OPTIONS":
            return self._socket
        if path == RPC_PATH and request.method == "POST":
            return self._rpc
        if self._with_decks and path.startswith(_DECKS):
            return self._decks
        return self._router

    @property
    def port(self) -> int:
        """The clients' port."""
        return self._port(CLIENTS)

    @property
    def service_port(self) -> int:
        """The services' port."""
        return self._port(SERVICES)

    @property
    def ops_port(self) -> int:
        """The operator's port."""
        return self._port(OPERATOR)

    def _port(self, name: str) -> int:
        if name not in self._listeners:
            raise ConfigurationError("This port is not open.")
        return self._listeners[name].port

    async def drain(self) -> None:
        """Shut down gracefully within `limits.drain` seconds."""
        if not self._listeners or self.context.draining:
            return
        context, connections = self.context, self.registry.connections
        loop, limits = asyncio.get_running_loop(), context.limits

        def ended() -> bool:
            for connection in list(connections):
                connection.close_unless_answering()
            return not connections

        started_at = loop.time()
        deadline = started_at + limits.drain
        context.draining = context.long_answers.hurry = True
        context.service.feed.head.close()
        context.presence.close()
        fields = {"connections": len(connections), "in_flight": context.in_flight}
        log.info("drain", extra={"fields": fields})
        for name, listener in self._listeners.items():
            if name != OPERATOR:
                listener.close()
        ended()
        answered_by = deadline - 2 * limits.closing
        await clients.disconnect(self.registry.clients(), within=answered_by - started_at)
        await _until(lambda: not context.in_flight, answered_by)
        self.registry.close_all()
        await _until(lambda: not connections, min(loop.time() + FAREWELL, deadline - 1))
        await _until(ended, deadline - 1)
        aborted = list(connections)
        for connection in aborted:
            connection.abort()
        await self._cancel_tasks()
        await context.tasks.close()
        await self._close_ports()
        seconds = round(loop.time() - started_at, 3)
        log.info("drained", extra={"fields": {"seconds": seconds, "cut": len(aborted)}})

    async def _keepalive(self) -> None:
        for beat in count():
            await asyncio.sleep(self.context.limits.keepalive / clients.BEATS)
            self.registry.ping(beat)

    async def _measure_lag(self) -> None:
        """By how much the event loop runs timers late."""
        while True:
            due = self.context.clock() + LAG_SECONDS
            await asyncio.sleep(LAG_SECONDS)
            self.metrics.lag.observe(max(0.0, self.context.clock() - due))

    async def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _close_ports(self) -> None:
        for listener in self._listeners.values():
            listener.close()
            await listener.wait_closed()


@asynccontextmanager
async def serve(service: Service, **settings: Any) -> AsyncIterator[Gateway]:
    """A running `Gateway` with these settings; it drains when the block ends."""
    gateway = Gateway(service, **settings)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.drain()


def _described(make: str, path: str) -> Any:
    """A document of the interface, by a function of `schema`, which its first request imports."""
    return getattr(import_module("dealer.gateway.schema"), make)(path)


async def _until(condition: Callable[[], bool], deadline: float) -> None:
    """Wait for a condition, at most until the loop's clock shows `deadline`."""
    loop = asyncio.get_running_loop()
    while not condition() and loop.time() < deadline:  # noqa: ASYNC110  a few times in a lifetime
        await asyncio.sleep(0.01)
