"""The operator's own port: is it alive, is it ready, what does it count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from dealer.errors import DealerError
from dealer.gateway.http import response
from dealer.gateway.metrics import Metrics
from dealer.service import Service

READY_SECONDS = 2.0
"""How long the log may take to answer before the house counts as not ready."""

PROBE = "ready"
"""What is written, once, and read back each time."""


class Operations:
    """`/healthz` says that the process turns, `/readyz` that the log takes and gives events."""

    def __init__(self, service: Service, metrics: Metrics, *, draining: Callable[[], bool]) -> None:
        self._service = service
        self._metrics = metrics
        self._draining = draining

    async def answer(self, connection: ServerConnection, request: Request) -> Response:
        path = request.path.partition("?")[0]
        if request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered here.\n")
        if path == "/healthz":
            return response(HTTPStatus.OK, "alive\n")
        if path == "/readyz":
            return await self._ready()
        if path == "/metrics":
            return response(HTTPStatus.OK, self._metrics.page(), kind=CONTENT_TYPE_LATEST)
        return response(HTTPStatus.NOT_FOUND, "Here are /healthz, /readyz and /metrics.\n")

    async def _ready(self) -> Response:
        if self._draining():
            return response(HTTPStatus.SERVICE_UNAVAILABLE, "draining\n")
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._service.log.put_house(PROBE, b"")
                await self._service.log.house(PROBE)
        except TimeoutError:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, "the log does not answer in time\n")
        except DealerError as error:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n")
        return response(HTTPStatus.OK, "ready\n")
