"""Fixtures of the Python client's tests, for JavaScript clients in node."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.client.conftest import dealt, game, house, proxy, real_server
from tests.web.client.node_client import NodeClient

__all__ = ["clients", "dealt", "game", "house", "proxy", "real_server"]


@pytest.fixture
async def clients() -> AsyncIterator[NodeClient]:
    async with NodeClient() as clients:
        yield clients
