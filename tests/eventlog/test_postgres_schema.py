"""The shelves on a server: made by one hand, when told to, and refused when they are old."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.errors import DatabaseError, DatabaseNew, DatabaseOld
from dealer.eventlog import Appended, Log, migrate
from dealer.eventlog.look import look, revision
from dealer.eventlog.server import Server
from dealer.eventlog.upkeep import migrate_database
from tests.eventlog.asked import A, append
from tests.eventlog.conftest import PostgresHouse
from tests.postgres import Postgres

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty(postgres: Postgres) -> Iterator[str]:
    name = postgres.empty()
    yield postgres.url(name)
    postgres.drop(name)


async def test_after_a_migration_nothing_is_left_to_migrate(empty: str) -> None:
    assert await revision(empty) is None
    await migrate_database(empty)
    assert await revision(empty) == migrate.revisions()[-1]
    engine = Server(empty).engine({})
    async with engine.connect() as connection:
        await connection.run_sync(migrate.check)
    await engine.dispose()


async def test_an_old_schema_is_refused_with_the_command_that_mends_it(
    empty: str, server_place: PostgresHouse
) -> None:
    for way in (Log.open, look):
        with pytest.raises(DatabaseOld, match=r"is empty; run `dealer migrate --database"):
            await way(empty)
    server_place.ask("UPDATE alembic_version SET version_num = '0001'")
    for way in (Log.open, look):
        with pytest.raises(DatabaseOld, match=r"schema 0001 .*run `dealer migrate"):
            await way(server_place.url)
    assert server_place.ask("SELECT version_num FROM alembic_version") == [("0001",)]


async def test_a_schema_of_a_newer_program_is_not_touched(server_place: PostgresHouse) -> None:
    server_place.ask("UPDATE alembic_version SET version_num = '9000'")
    for way in (Log.open, look, migrate_database):
        with pytest.raises(DatabaseNew, match=r"9000.*install"):
            await way(server_place.url)


async def test_tables_of_extensions_are_no_fault_and_those_called_like_ours_are(
    postgres: Postgres, empty: str
) -> None:
    name = empty.partition("?")[0].rpartition("/")[2]
    postgres.ask(name, "CREATE TABLE spatial_ref_sys (id integer)")
    postgres.ask(name, "CREATE TABLE event (id integer)")
    with pytest.raises(DatabaseError, match="another program"):
        await migrate_database(empty)
    postgres.ask(name, "DROP TABLE event")
    await migrate_database(empty)
    async with await Log.open(empty) as log:
        assert await log.append(append(A, 0)) == Appended(1)


async def test_who_migrates_at_the_same_time_finds_it_done(empty: str) -> None:
    await asyncio.gather(*(migrate_database(empty) for _ in range(4)))
    assert await revision(empty) == migrate.revisions()[-1]


async def test_who_looks_writes_nothing(server_place: PostgresHouse) -> None:
    async with await server_place.open() as log:
        await log.append(append(A, 0))
    async with await look(server_place.url) as log:
        assert await log.head(A) == 1
        assert await log.tables_between(bytes(16), b"\xff" * 16, limit=2) == [A]
        with pytest.raises(DatabaseError, match="no writes"):
            await log.fetch("UPDATE stream SET projected = 0 RETURNING id")


def test_by_hand_the_address_is_an_argument(empty: str) -> None:
    for command in (["upgrade", "head"], ["check"], ["downgrade", "base"]):
        subprocess.run(
            [sys.executable, "-m", "alembic", "-x", f"database={empty}", *command],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )


def test_the_shards_have_a_place_for_every_table(server_place: PostgresHouse) -> None:
    readme = (ROOT / "dealer" / "eventlog" / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## In shards\n")[1].split("\n## ")[0]
    found = server_place.ask(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
    )
    assert ("archived",) in found
    for (table,) in found:
        assert f"'{table}'" in section or f"`{table}`" in section, table
    keyed = server_place.ask(
        "SELECT table_name::text FROM information_schema.columns"
        " JOIN pg_tables ON tablename = table_name AND schemaname = table_schema"
        " WHERE column_name = 'stream' AND table_schema = current_schema()"
    )
    for (table,) in keyed:
        assert f"'{table}'" in section, f"{table} belongs to one table's shard"
