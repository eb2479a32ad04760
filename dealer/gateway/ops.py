"""Operator's HTTP port: liveness, readiness and metrics.

The answers are made from what the server has in memory and from the latest result of its probe: a
request causes no query, and no write.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from websockets.http11 import Request, Response

from dealer.errors import ConfigurationError
from dealer.eventlog.health import first_lines
from dealer.gateway.limits import Limits
from dealer.gateway.net import checks
from dealer.gateway.net.connection import Connection
from dealer.gateway.net.host_names import HostNames
from dealer.gateway.net.listener import Listener, listening_sockets
from dealer.gateway.net.responses import allowing, response
from dealer.gateway.session.context import GatewayContext
from dealer.projector.stream_projector import Stopped
from dealer.service.operations.probe import Probe
from dealer.service.operations.restore_check import CloseProgress

log = logging.getLogger(__name__)

OPENING_SECONDS = 10.0
"""Timeout of a request."""

NEW_TABLES = "for=new-tables"
"""The query of `/readyz` that asks whether this node opens tables, too."""


class Operations:
    """What a running server answers: `/readyz`, the log can be written and read; `/metrics`.

    A table whose log is damaged leaves the server ready, because the others play on; `/readyz`
    names it in a line of its own.

    `/readyz?for=new-tables` is not ready either while the node has to be restarted before it opens
    tables, so that a load balancer prefers others for clients that may open one.
    """

    def __init__(self, context: GatewayContext, probe: Probe) -> None:
        self.probe = probe
        self._context = context

    def answer(self, path: str, query: str) -> Response:
        if path == "/metrics":
            # At first use: the library brings an HTTP server.
            from dealer.gateway.observe.exposition import CONTENT_TYPE_LATEST, exposition

            page = exposition(self._context.metrics)
            return response(HTTPStatus.OK, page, kind=CONTENT_TYPE_LATEST)
        return self._ready(new_tables=query == NEW_TABLES)

    @property
    def problem(self) -> str | None:
        """Why the server is not ready; None if it is."""
        return "draining" if self._context.draining else self.probe.problem

    @property
    def stopped(self) -> list[Stopped]:
        """The tables whose read models stopped at an event."""
        return list(self._context.service.projection.projector.stopped.values())

    def _ready(self, *, new_tables: bool) -> Response:
        service = self._context.service
        maintenance = service.maintenance
        key_needed = maintenance.key_needed
        problem = self.problem or (key_needed if new_tables else None)
        if problem is not None:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n")
        down = service.log.writer.unreachable
        remarks = filter(None, (maintenance.notice, key_needed, *down, *service.damaged.lines()))
        lines = ["ready", self.probe.database, *remarks, *_tables(self.stopped)]
        return response(HTTPStatus.OK, "".join(f"{line}\n" for line in lines))


class OperatorPort:
    """The operator's port, which is open while the server starts, too.

    `/healthz`: the process runs. All else is not available until `operations` are there; meanwhile
    `/readyz` says how far `progress` is.
    """

    def __init__(self, hosts: HostNames) -> None:
        self.progress = CloseProgress()
        self.operations: Operations | None = None
        self.listener: Listener | None = None
        self._hosts = hosts

    async def open(
        self, host: str, port: int | None, limits: Limits, *, any_port: bool = False
    ) -> None:
        """Listen, if a port is given; raises ConfigurationError if it is taken.

        With `any_port` a free one replaces it then.
        """
        if port is None:
            return
        try:
            listening = await listening_sockets(host, port, flag="--ops-port")
        except ConfigurationError as error:
            if not any_port:
                raise
            log.warning("operator's port in use", extra={"fields": {"says": str(error)}})
            listening = await listening_sockets(host, 0)
        self.listener = Listener(listening, partial(OperatorConnection, self, limits))

    def close(self) -> None:
        """Close the port, if it is open."""
        if self.listener is not None:
            self.listener.close()

    def check(self, request: Request, body_length: int) -> Response | None:
        """The answer to a request that is refused by its head; None for any other."""
        refusal = (
            checks.host_refused(self._hosts, request)
            or checks.cross_site_refused(request)
            or checks.origin_refused(request)
            or checks.body_refused(request.method, body_length, 0)
        )
        if refusal is None and request.method == "OPTIONS":
            return allowing("GET, HEAD, OPTIONS")
        if refusal is None and request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n")
        return refusal

    def answer(self, request: Request) -> Response:
        path, _, query = request.path.partition("?")
        if path == "/healthz":
            return response(HTTPStatus.OK, "alive\n")
        if path not in ("/readyz", "/metrics"):
            return response(HTTPStatus.NOT_FOUND, "This port has /healthz, /readyz and /metrics.\n")
        if self.operations is None:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"The server starts{self.progress}.\n")
        return self.operations.answer(path, query)


def operator_hosts(names: Iterable[str], host: str) -> HostNames:
    """The names that a request to the operator's port at `host` may have."""
    return HostNames([*names, host], single_label=True)


class OperatorConnection(Connection):
    """A connection to the operator's port."""

    def __init__(self, port: OperatorPort, limits: Limits) -> None:
        super().__init__(replace(limits, opening=OPENING_SECONDS))
        self._port = port

    def check(self, request: Request) -> Response | None:
        return self._port.check(request, self.exchange.body_length)

    def run(self, request: Request, body: bytes) -> None:
        self.answer(self._port.answer(request))


def _tables(stopped: list[Stopped]) -> list[str]:
    lines = (
        f"table {each.table}: the read models stopped at version {each.version}. {each.sentence}"
        for each in stopped
    )
    return first_lines(lines, "more tables whose read models stopped")
