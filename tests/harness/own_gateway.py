"""A server in the test's own process: the real service and gateway on a database file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dealer.gateway.limits import Limits
from dealer.gateway.server import serve
from dealer.service.build import open_service
from dealer.service.service import DEFAULTS, ServiceOptions
from tests.harness.limits import NO_RATES


@asynccontextmanager
async def own_gateway(folder: Path, options: ServiceOptions = DEFAULTS) -> AsyncIterator[str]:
    """The address (`ws://…/ws`) of a server without rate limits."""
    limits = Limits(**(NO_RATES | {"closing": 0.2, "drain": 3.0}))
    async with (
        open_service(f"sqlite:///{folder / 'dealer.db'}", options) as opened,
        serve(opened, port=0, limits=limits) as gateway,
    ):
        yield f"ws://127.0.0.1:{gateway.port}/ws"
