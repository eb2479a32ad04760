"""The operator's own port: is it alive, is it ready, what does it count."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST
from websockets.http11 import Request, Response

from dealer.errors import DealerError
from dealer.gateway.host_names import HostNames
from dealer.gateway.http import response
from dealer.gateway.http_connection import HttpConnection
from dealer.gateway.metrics import Metrics
from dealer.gateway.refusals import body_refused, cross_site_refused, host_refused
from dealer.service import Service
from dealer.service.clock import apart

FRESH_SECONDS = 0.25
"""How long the answer of one probe, which writes to the database, is given to all requests."""

READY_SECONDS = 2.0
"""How long the log may take to answer before the house counts as not ready."""

PROBE = "ready"
"""What is written, once, and read back each time."""

BEHIND = (
    "SELECT coalesce(sum(version - projected), 0), count(*) FROM stream WHERE version > projected"
)

log = logging.getLogger(__name__)


class Operations:
    """`/healthz` says that the process turns, `/readyz` that the log takes and gives events."""

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
        self._told: str | None = None
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
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered here.\n")
        if path == "/healthz":
            return response(HTTPStatus.OK, "alive\n")
        if path == "/readyz":
            return await self._ready()
        if path == "/metrics":
            await self._measure()
            return response(HTTPStatus.OK, self._metrics.page(), kind=CONTENT_TYPE_LATEST)
        return response(HTTPStatus.NOT_FOUND, "Here are /healthz, /readyz and /metrics.\n")

    async def _ready(self) -> Response:
        trouble = await self._trouble()
        self._note(trouble)
        if trouble is not None:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{trouble}\n")
        notice = self._service.closures.notice
        lines = ["ready", self._database, *([] if notice is None else [notice])]
        return response(HTTPStatus.OK, "".join(f"{line}\n" for line in lines))

    def _note(self, trouble: str | None) -> None:
        """A line whenever the answer is another one than before."""
        ready = trouble is None
        changed = ready != self._metrics.ready or trouble != self._told
        self._told = trouble
        if changed and not self._draining():
            level, told = (logging.INFO, {}) if ready else (logging.ERROR, {"says": trouble})
            log.log(level, "readiness", extra={"told": {"ready": ready, **told}})
        self._metrics.ready = ready

    async def _measure(self) -> None:
        """What only the database knows, as far as it answers."""
        await self._ready()
        with suppress(DealerError, TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                ((events, tables),) = await self._service.log.fetch(BEHIND)
                self._metrics.behind = (int(events), int(tables))

    async def _trouble(self) -> str | None:
        """Why the house is not ready; None if it is. All requests of a moment share one probe."""
        if self._draining():
            return "draining"
        loop = asyncio.get_running_loop()
        probe = self._probe
        if probe is None or (probe.done() and loop.time() - self._probed >= FRESH_SECONDS):
            probe = self._probe = loop.create_task(self._ask_database())
        return await asyncio.shield(probe)

    async def close(self) -> None:
        """End a probe that runs."""
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)

    async def _ask_database(self) -> str | None:
        try:
            return await self._check()
        finally:
            self._probed = asyncio.get_running_loop().time()

    async def _check(self) -> str | None:
        """Write to the log and read from it; what is wrong with it, None if nothing is."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._service.log.put_house(PROBE, b"")
                await self._service.log.house(PROBE)
                wrong = await apart(self._service.log, self._service.now)
                self._database = await self._service.log.version()
        except TimeoutError:
            return "the log does not answer in time"
        except DealerError as error:
            return str(error)
        return None if wrong is None else f"{wrong}."
