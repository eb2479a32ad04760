"""A real house on a real database for every test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.service import Service

OpenService = Callable[[], Awaitable[Service]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of this test's own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'dealer.db'}"
        return
    server = request.getfixturevalue("postgres")
    database = server.database()
    yield server.url(database)
    server.drop(database)


@pytest.fixture
async def open_service(url: str, tmp_path: Path) -> AsyncIterator[OpenService]:
    """Opens the house on this test's database; called again it is another process's."""
    async with AsyncExitStack() as stack:

        async def open_() -> Service:
            log = await stack.enter_async_context(await Log.open(url))
            file = key_file(url, tmp_path / "house.key")
            house = await open_house(log, file, fresh=secrets.token_bytes(32))
            service = Service(log, house)
            stack.push_async_callback(service.close)
            return service

        yield open_


@pytest.fixture
async def service(open_service: OpenService) -> Service:
    return await open_service()
