"""Real processes for the tests that go from the socket to the audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.whole.house import HouseProcess


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[HouseProcess]:
    async with HouseProcess(tmp_path) as house:
        yield house
