"""The real house and the man in the middle of the Python client's tests, for players in node."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.client.conftest import dealt, game, house, proxy, real_house
from tests.web.client.players import Players

__all__ = ["dealt", "game", "house", "players", "proxy", "real_house"]


@pytest.fixture
async def players() -> AsyncIterator[Players]:
    async with Players() as players:
        yield players
