"""A database of the release before is migrated and shortened while tables are played on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine

from dealer.eventlog import Log, migrate, shortening
from dealer.eventlog.shortening import shorten
from dealer.feed.feed import Feed
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    CloseRound,
    CloseTable,
    Draw,
    OpenRound,
    StartShuffle,
    TakeSeat,
)
from dealer.service import Service
from dealer.service.live_table import LiveTable
from dealer.service.requests import IdempotencyKey
from dealer.service.service_keys import ServiceKeys
from dealer.service.startup import open_service
from tests.harness.postgres import Postgres

HOST, SEAT = Actor(host=True), Actor(seat=1)
KEY = IdempotencyKey("seat:1:2", "4b0f1c0e-0000-4000-8000-00000000000a", b"draw")


async def play(service: Service, live: LiveTable) -> None:
    await service.execute(live, OpenRound(HOST, STANDARD, "house", 10_000, 10_000))
    await service.execute(live, StartShuffle(HOST))
    for _ in range(5):
        await service.execute(live, Draw(SEAT))


async def bundle(service: Service, table: bytes) -> list[str]:
    live = await service.loader.load(table)
    return [line async for line in service.bundle(live)]


async def played_before(service: Service) -> tuple[bytes, bytes, Any]:
    """A closed and an open table, and the answer to the command KEY at the open one."""
    closed, _ = await service.open_table({})
    await service.execute(closed, TakeSeat("Ada"))
    await play(service, closed)
    await service.execute(closed, CloseRound(HOST))
    await service.execute(closed, CloseTable(HOST))
    current, _ = await service.open_table({})
    await service.execute(current, TakeSeat("Bob"))
    await play(service, current)
    answer = await service.execute(current, Draw(SEAT), key=KEY)
    await play_on(service, current)
    return closed.id, current.id, answer


async def play_on(service: Service, live: LiveTable) -> None:
    await service.execute(live, CloseRound(HOST))
    await play(service, live)


async def _read_nothing(*_: object) -> None: ...


@pytest.fixture(params=["sqlite", "postgres"])
def older_url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A database of schema 0006 on SQLite; on PostgreSQL one that is written in the old form."""
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        name = server.database()
        server.ask(name, "DELETE FROM house WHERE name = 'event_form'")
        yield server.url(name)
        server.drop(name)
        return
    engine = create_engine(f"sqlite:///{tmp_path / 'dealer.db'}")
    with engine.connect() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrate.scripts()))
        command.upgrade(config, "0006")
        connection.commit()
    engine.dispose()
    known = migrate.revisions()
    monkeypatch.setattr(migrate, "revisions", lambda: known[: known.index("0006") + 1])
    # An older server reads no tables of later schemas at its start.
    monkeypatch.setattr(ServiceKeys, "refresh", _read_nothing)
    monkeypatch.setattr(Feed, "open", _read_nothing)
    yield f"sqlite:///{tmp_path / 'dealer.db'}"


async def test_a_database_is_shortened_while_tables_are_played(
    older_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "house.key"
    async with open_service(older_url, house="house.example", house_key=key) as service:
        closed, current, answer = await played_before(service)
        before = await bundle(service, closed)
        ((short,),) = await service.log.fetch("SELECT count(*) FROM event WHERE type = 'D'")
        assert short == 0
    monkeypatch.undo()
    monkeypatch.setattr(shortening, "ROWS", 16)
    async with (
        open_service(older_url, house="house.example", house_key=key) as service,
        await Log.open(older_url) as other,
    ):
        assert await bundle(service, closed) == before
        live = await service.loader.load(current)
        work = asyncio.create_task(shorten(other, settle_seconds=0))
        for _ in range(3):
            await play_on(service, live)
            assert await bundle(service, closed) == before
        assert await work > 100
        await play_on(service, live)
        assert await bundle(service, closed) == before
        again = await service.execute(live, Draw(SEAT), key=KEY)
        assert again == answer
        types = await service.log.fetch("SELECT DISTINCT type FROM event")
        assert not {"CardDrawn", "CardsSwapped", "DeckSealed"} & {name for (name,) in types}
        leaves = await bundle(service, current)
    async with open_service(older_url, house="house.example", house_key=key) as service:
        assert await bundle(service, closed) == before
        assert await bundle(service, current) == leaves
        await service.log.run_in_transaction(_every_row_is_shown)


def _every_row_is_shown(connection: Connection) -> None:
    """The view has no code of the short form."""
    select = "SELECT count(*) FROM events WHERE length(type) = 1 OR public NOT LIKE '{%'"
    assert connection.exec_driver_sql(select).scalar() == 0
