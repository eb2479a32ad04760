"""Fixtures: services with a feed, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.service import DEFAULTS, ServiceOptions
from tests.service.conftest import postgres_url, url

__all__ = ["postgres_url", "url"]

OpenService = Callable[..., Awaitable[Service]]


@pytest.fixture
async def open_node(url: str, tmp_path: Path) -> AsyncIterator[OpenService]:
    """Opens a service on the database `url`; each call opens another node."""
    async with AsyncExitStack() as stack:

        async def open_(options: ServiceOptions = DEFAULTS) -> Service:
            return await stack.enter_async_context(
                open_service(url, options, house_key=tmp_path / "house.key")
            )

        yield open_
