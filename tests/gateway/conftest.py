"""A real house with its door open, on a real file, for every test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.gateway import Gateway, Limits, serve
from dealer.service import Service
from tests.gateway.guest import Guest
from tests.limits import NO_RATES

EAGER = Limits(**NO_RATES, drain=6.0, closing=0.5)

Arrive = Callable[..., Awaitable[Guest]]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url) as log:
        service = Service(log, await open_house(log, key_file(url), fresh=secrets.token_bytes(32)))
        yield service
        await service.close()


@pytest.fixture
async def open_gateway(service: Service) -> AsyncIterator[Callable[..., Awaitable[Gateway]]]:
    async with AsyncExitStack() as stack:

        async def open_(**settings: Any) -> Gateway:
            settings = {"host": "127.0.0.1", "port": 0, "limits": EAGER} | settings
            return await stack.enter_async_context(serve(service, **settings))

        yield open_


@pytest.fixture
async def gateway(open_gateway: Callable[..., Awaitable[Gateway]]) -> Gateway:
    return await open_gateway()


@pytest.fixture
async def arrive(request: pytest.FixtureRequest) -> AsyncIterator[Arrive]:
    """Lets guests in by the door of `gateway`, or of another that is named."""
    async with AsyncExitStack() as stack:

        async def arrive_(gateway: Gateway | None = None, **settings: Any) -> Guest:
            door = gateway or request.getfixturevalue("gateway")
            guest = await Guest.arrive(door.port, **settings)
            stack.push_async_callback(guest.leave)
            return guest

        yield arrive_
