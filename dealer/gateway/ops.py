"""Operator's HTTP port: liveness, readiness and metrics.

The answers are made from what the server has in memory and from the latest result of its probe: a
request causes no query, and no write.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST
from websockets.http11 import Request, Response

from dealer.eventlog.health import first_lines
from dealer.gateway.limits import Limits
from dealer.gateway.net.checks import (
    body_refused,
    cross_site_refused,
    host_refused,
    origin_refused,
)
from dealer.gateway.net.connection import Connection
from dealer.gateway.net.host_names import HostNames
from dealer.gateway.net.responses import allowing, response
from dealer.gateway.session.context import GatewayContext
from dealer.projector.stream_projector import Stopped
from dealer.service.operations.probe import Probe

OPENING_SECONDS = 10.0
"""Timeout of a request."""

NEW_TABLES = "for=new-tables"
"""The query of `/readyz` that asks whether this node opens tables, too."""


class Operations:
    """`/healthz`: the process runs; `/readyz`: the log can be written and read; `/metrics`.

    A table whose log is damaged leaves the server ready, because the others play on; `/readyz`
    names it in a line of its own.

    `/readyz?for=new-tables` is not ready either while the node has to be restarted before it opens
    tables, so that a load balancer prefers others for clients that may open one.
    """

    def __init__(self, context: GatewayContext, probe: Probe, *, hosts: HostNames) -> None:
        self.probe = probe
        self._context = context
        self._hosts = hosts

    def check(self, request: Request, body_length: int) -> Response | None:
        """The answer to a request that is refused by its head; None for any other."""
        refusal = (
            host_refused(self._hosts, request)
            or cross_site_refused(request)
            or origin_refused(request)
            or body_refused(request.method, body_length, 0)
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
        if path == "/readyz":
            return self._ready(new_tables=query == NEW_TABLES)
        if path == "/metrics":
            return response(HTTPStatus.OK, self._context.metrics.page(), kind=CONTENT_TYPE_LATEST)
        return response(HTTPStatus.NOT_FOUND, "This port has /healthz, /readyz and /metrics.\n")

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
        remarks = filter(None, (maintenance.notice, key_needed, *service.damaged.lines()))
        lines = ["ready", self.probe.database, *remarks, *_tables(self.stopped)]
        return response(HTTPStatus.OK, "".join(f"{line}\n" for line in lines))


class OperatorConnection(Connection):
    """A connection to the operator's port."""

    def __init__(self, operations: Operations, limits: Limits) -> None:
        super().__init__(replace(limits, opening=OPENING_SECONDS))
        self._operations = operations

    def check(self, request: Request) -> Response | None:
        return self._operations.check(request, self.exchange.body_length)

    def run(self, request: Request, body: bytes) -> None:
        self.answer(self._operations.answer(request))


def _tables(stopped: list[Stopped]) -> list[str]:
    lines = (
        f"table {each.table}: the read models stopped at version {each.version}. {each.sentence}"
        for each in stopped
    )
    return first_lines(lines, "more tables whose read models stopped")
