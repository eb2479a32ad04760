"""Fixtures: services with a webhook, on SQLite and on PostgreSQL, and a receiver."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dealer.webhooks import delivery, runner
from tests.feed.conftest import OpenService, open_node, postgres_url, url
from tests.webhooks.receiver import Receiver

__all__ = ["OpenService", "open_node", "postgres_url", "url"]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short delays between attempts, and between looks for webhooks."""
    monkeypatch.setattr(delivery, "FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(delivery, "LONGEST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(runner, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(runner, "STORE_SECONDS", 0.01)
