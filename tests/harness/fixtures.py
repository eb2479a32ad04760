"""Fixtures with server processes, for the e2e and chaos tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.server_process import ServerProcess


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as server:
        yield server
