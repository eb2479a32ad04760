"""A real house on a real file for every test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.service import Service

OpenService = Callable[[], Awaitable[Service]]


@pytest.fixture
async def open_service(tmp_path: Path) -> AsyncIterator[OpenService]:
    """Opens the house on this test's file; called again it is another process's, or a restart."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with AsyncExitStack() as stack:

        async def open_() -> Service:
            log = await stack.enter_async_context(await Log.open(url))
            house = await open_house(log, key_file(url), fresh=secrets.token_bytes(32))
            service = Service(log, house)
            stack.push_async_callback(service.close)
            return service

        yield open_


@pytest.fixture
async def service(open_service: OpenService) -> Service:
    return await open_service()
