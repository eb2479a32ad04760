"""Operator's HTTP port: liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST
from websockets.http11 import Request, Response

from dealer.errors import DealerError
from dealer.gateway.http.connection import HttpConnection
from dealer.gateway.http.host_names import HostNames
from dealer.gateway.http.refusals import body_refused, cross_site_refused, host_refused
from dealer.gateway.http.responses import response
from dealer.gateway.observe.metrics import Metrics
from dealer.service import Service
from dealer.service.clock import clock_skew

FRESH_SECONDS = 0.25
"""For how long all requests share the answer of one probe, which writes to the database."""

READY_SECONDS = 2.0
"""Timeout of the probe, after which the server is not ready."""

PROBE = "ready"
"""Key of the metadata that the probe writes and reads."""

PROJECTOR_LAG = (
    "SELECT coalesce(sum(version - projected), 0), count(*) FROM stream WHERE version > projected"
)

log = logging.getLogger(__name__)


class Operations:
    """`/healthz`: the process runs; `/readyz`: the log can be written and read; `/metrics`."""

    def __init__(
        self,
        service: Service,
        metrics: Metrics,
        *,
        draining: Callable[[], bool],
        hosts: HostNames,
    ) -> None:
        self._service = service
        self._hosts = hosts
        self._metrics = metrics
        self._draining = draining
        self._last_problem: str | None = None
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = 0.0  # when it ended, by the loop's clock
        self._database = ""

    async def answer(self, connection: HttpConnection, request: Request) -> Response:
        path = request.path.partition("?")[0]
        refusal = host_refused(self._hosts, request) or cross_site_refused(request)
        if refusal is not None:
            return refusal
        if connection.body:
            return body_refused(request.method, connection.body, 0)
        if request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n")
        if path == "/healthz":
            return response(HTTPStatus.OK, "alive\n")
        if path == "/readyz":
            return await self._ready()
        if path == "/metrics":
            await self._measure()
            return response(HTTPStatus.OK, self._metrics.page(), kind=CONTENT_TYPE_LATEST)
        return response(HTTPStatus.NOT_FOUND, "This port has /healthz, /readyz and /metrics.\n")

    async def _ready(self) -> Response:
        problem = await self._problem()
        self._log_change(problem)
        if problem is not None:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n")
        notice = self._service.maintenance.notice
        lines = ["ready", self._database, *([] if notice is None else [notice])]
        return response(HTTPStatus.OK, "".join(f"{line}\n" for line in lines))

    def _log_change(self, problem: str | None) -> None:
        """Log the answer if it differs from the previous one."""
        ready = problem is None
        changed = ready != self._metrics.ready or problem != self._last_problem
        self._last_problem = problem
        if changed and not self._draining():
            level, fields = (logging.INFO, {}) if ready else (logging.ERROR, {"says": problem})
            log.log(level, "readiness", extra={"fields": {"ready": ready, **fields}})
        self._metrics.ready = ready

    async def _measure(self) -> None:
        """Read the metrics that are in the database, if it answers."""
        await self._ready()
        with suppress(DealerError, TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                ((events, tables),) = await self._service.log.fetch(PROJECTOR_LAG)
                self._metrics.projector_lag = (int(events), int(tables))

    async def _problem(self) -> str | None:
        """Why the server is not ready; None if it is. Concurrent requests share one probe."""
        if self._draining():
            return "draining"
        loop = asyncio.get_running_loop()
        probe = self._probe
        if probe is None or (probe.done() and loop.time() - self._probed >= FRESH_SECONDS):
            probe = self._probe = loop.create_task(self._run_probe())
        return await asyncio.shield(probe)

    async def close(self) -> None:
        """Cancel a running probe."""
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)

    async def _run_probe(self) -> str | None:
        try:
            return await self._check()
        finally:
            self._probed = asyncio.get_running_loop().time()

    async def _check(self) -> str | None:
        """Write to the log and read from it; the problem, or None."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._service.log.put_metadata(PROBE, b"")
                await self._service.log.metadata(PROBE)
                wrong = await clock_skew(self._service.log, self._service.now)
                self._database = await self._service.log.version()
        except TimeoutError:
            return "the log does not answer in time"
        except DealerError as error:
            return str(error)
        return None if wrong is None else f"{wrong}."
