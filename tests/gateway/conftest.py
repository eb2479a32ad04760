"""Fixtures: a gateway on an SQLite file, several nodes on one database, and connected clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway import Gateway, Limits, serve
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.nodes import head_poller
from tests.gateway.rpc_client import RpcClient
from tests.harness.empty_log import empty_log
from tests.harness.limits import NO_RATES
from tests.service.bare_service import bare_service
from tests.service.conftest import postgres_url, url

__all__ = ["postgres_url", "url"]

TEST_LIMITS = Limits(**NO_RATES, drain=6.0, closing=0.5)
"""Without rates, and with short waits."""

Connect = Callable[..., Awaitable[RpcClient]]
OpenGateway = Callable[..., Awaitable[Gateway]]


@asynccontextmanager
async def serving(
    opening: AbstractAsyncContextManager[Service], **settings: Any
) -> AsyncIterator[Gateway]:
    """A gateway of the service that this opens."""
    settings = {"port": 0, "limits": TEST_LIMITS} | settings
    async with opening as service, serve(service, **settings) as gateway:
        yield gateway


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with bare_service(empty_log(tmp_path / "dealer.db")) as service:
        yield service


@pytest.fixture
async def open_gateway(service: Service) -> AsyncIterator[OpenGateway]:
    async with AsyncExitStack() as stack:

        async def open_(**settings: Any) -> Gateway:
            settings = {"host": "127.0.0.1", "port": 0, "limits": TEST_LIMITS} | settings
            return await stack.enter_async_context(serve(service, **settings))

        yield open_


@pytest.fixture
async def gateway(open_gateway: OpenGateway) -> Gateway:
    return await open_gateway()


@pytest.fixture
async def open_node(url: str, tmp_path: Path) -> AsyncIterator[OpenGateway]:
    """Opens a gateway on the database `url`; each call opens another node, with its own service."""
    async with AsyncExitStack() as stack:

        async def open_() -> Gateway:
            service = open_service(url, house_key=tmp_path / "house.key")
            return await stack.enter_async_context(serving(service))

        yield open_


@pytest.fixture
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Connects clients to `gateway`, or to the one that is passed."""
    async with AsyncExitStack() as stack:

        async def connect_(gateway: Gateway | None = None, **settings: Any) -> RpcClient:
            server = gateway or request.getfixturevalue("gateway")
            client = await RpcClient.connect(server.port, **settings)
            stack.push_async_callback(client.close)
            return client

        yield connect_


class ManualClock:
    """A clock that only a test advances."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stop_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Gateway], ManualClock]:
    """Replaces a gateway's clock by one that stays at the present time."""

    def stop(gateway: Gateway) -> ManualClock:
        clock = ManualClock(asyncio.get_running_loop().time())
        monkeypatch.setattr(gateway.context, "clock", clock)
        monkeypatch.setattr(gateway.context.long_answers, "_clock", clock)
        return clock

    return stop


@pytest.fixture
def often_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node looks for the events of the others ten times a second."""
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 0.1)
