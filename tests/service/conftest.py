"""Fixtures: a database of each kind, and services of one or several nodes on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dealer.service import Service
from dealer.service.build import open_service as open_with_tasks
from tests.harness.empty_log import empty_log
from tests.harness.postgres import Postgres
from tests.service.bare_service import bare_service

OpenService = Callable[[], Awaitable[Service]]
OpenNodes = Callable[[int], Awaitable[list[Service]]]


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """An empty PostgreSQL database for this test."""
    database = postgres.database()
    yield postgres.url(database)
    postgres.drop(database)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without events for this test."""
    if request.param == "sqlite":
        return empty_log(tmp_path / "dealer.db")
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
async def open_service(url: str, tmp_path: Path) -> AsyncIterator[OpenService]:
    """Opens a service on the database; each call opens another node, without background tasks."""
    async with AsyncExitStack() as stack:

        async def open_() -> Service:
            service = bare_service(url, key=tmp_path / "house.key")
            return await stack.enter_async_context(service)

        yield open_


@pytest.fixture
async def service(open_service: OpenService) -> Service:
    return await open_service()


@pytest.fixture
async def open_nodes(postgres_url: str, tmp_path: Path) -> AsyncIterator[OpenNodes]:
    """Opens this many nodes on PostgreSQL, each with its background tasks."""
    async with AsyncExitStack() as stack:

        async def open_(count: int) -> list[Service]:
            key = tmp_path / "house.key"
            return [
                await stack.enter_async_context(open_with_tasks(postgres_url, house_key=key))
                for _ in range(count)
            ]

        yield open_


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A savepoint in memory after each event, and in the database after each checkpoint."""
    monkeypatch.setattr("dealer.service.tables.live_table.STORE_EVERY", 1)
    monkeypatch.setattr("dealer.service.tables.loading.STORE_EVERY", 1)
    monkeypatch.setattr("dealer.service.tables.live_table.SAVEPOINT_EVERY", 1)
