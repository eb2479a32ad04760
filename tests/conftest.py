from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres, any_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; a test that needs one is skipped without it, and fails in CI."""
    with any_server() as server:
        yield server
