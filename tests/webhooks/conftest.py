"""Fixtures: services with a webhook, on SQLite and on PostgreSQL, and a receiver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dealer.service import Service
from dealer.service.startup import open_service
from dealer.webhooks import runner
from tests.service.conftest import postgres_url, url
from tests.webhooks.receiver import Receiver

__all__ = ["postgres_url", "url"]

OpenService = Callable[..., Awaitable[Service]]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short delays between attempts, and between looks for webhooks."""
    monkeypatch.setattr(runner, "FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(runner, "LONGEST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(runner, "RENEW_SECONDS", 0.1)


@pytest.fixture
async def open_node(url: str, tmp_path: Path, soon: None) -> AsyncIterator[OpenService]:
    """Opens a service on the database `url`; each call opens another node."""
    async with AsyncExitStack() as stack:

        async def open_(**settings: Any) -> Service:
            return await stack.enter_async_context(
                open_service(url, house_key=tmp_path / "house.key", **settings)
            )

        yield open_
