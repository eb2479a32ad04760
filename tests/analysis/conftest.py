"""The recorded game on SQLite, and on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.analysis.recorded import record
from tests.harness.postgres import Postgres


class Recorded(NamedTuple):
    """A database with the recorded game, and the file of its house key."""

    url: str
    key: Path


@pytest.fixture(scope="session")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    # The key is not where commands look for it.
    found = Recorded(f"sqlite:///{folder / 'dealer.db'}", folder / "house.key")
    asyncio.run(record(*found))
    return found


@pytest.fixture(scope="session")
def on_postgres(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    database = postgres.database()
    found = Recorded(postgres.url(database), tmp_path_factory.mktemp("recorded") / "house.key")
    asyncio.run(record(*found))
    yield found
    postgres.drop(database)


@pytest.fixture(params=["sqlite", "postgres"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    found: Recorded = request.getfixturevalue(f"on_{request.param}")
    return found
