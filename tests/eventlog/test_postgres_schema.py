"""Schema on PostgreSQL: only `dealer migrate` changes it, and other versions are refused."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dealer.eventlog import Appended, Log, schema
from dealer.eventlog.backends import migrate_database, open_readonly, revision
from dealer.eventlog.postgres.database import PostgresDatabase
from tests.eventlog.conftest import TemporaryPostgres
from tests.eventlog.requests import A, append
from tests.harness.database_check import check_schema
from tests.harness.postgres import Postgres
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty(postgres: Postgres) -> Iterator[str]:
    name = postgres.empty()
    yield postgres.url(name)
    postgres.drop(name)


async def test_the_migrations_create_the_declared_schema(empty: str) -> None:
    assert await revision(empty) is None
    await migrate_database(empty)
    assert await revision(empty) == schema.revisions()[-1]
    engine = PostgresDatabase(empty).engine({})
    async with engine.connect() as connection:
        await connection.run_sync(check_schema)
    await engine.dispose()


async def test_an_old_schema_is_refused_with_the_command_that_migrates_it(
    empty: str, postgres_database: TemporaryPostgres
) -> None:
    for open_ in (Log.open, open_readonly):
        with pytest.raises(SchemaOutdated, match=r"is empty; run `dealer migrate --database"):
            await open_(empty)
    postgres_database.execute("UPDATE alembic_version SET version_num = '0001'")
    for open_ in (Log.open, open_readonly):
        with pytest.raises(SchemaOutdated, match=r"schema 0001 .*run `dealer migrate"):
            await open_(postgres_database.url)
    assert postgres_database.execute("SELECT version_num FROM alembic_version") == [("0001",)]


async def test_a_schema_of_a_newer_version_is_refused(
    postgres_database: TemporaryPostgres,
) -> None:
    postgres_database.execute("UPDATE alembic_version SET version_num = '9000'")
    for open_ in (Log.open, open_readonly, migrate_database):
        with pytest.raises(SchemaTooNew, match=r"9000.*install"):
            await open_(postgres_database.url)


async def test_other_tables_are_accepted_unless_they_have_a_name_of_the_schema(
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


async def test_concurrent_migrations_are_executed_once(empty: str) -> None:
    await asyncio.gather(*(migrate_database(empty) for _ in range(4)))
    assert await revision(empty) == schema.revisions()[-1]


async def test_several_databases_are_migrated_at_once(postgres: Postgres, tmp_path: Path) -> None:
    """In one process, whose migrations share what Alembic keeps of the running one."""
    names = [postgres.empty() for _ in range(3)]
    urls = [postgres.url(name) for name in names]
    urls += [f"sqlite:///{tmp_path / str(number)}.db" for number in range(3)]
    try:
        await asyncio.gather(*map(migrate_database, urls))
        assert {await revision(url) for url in urls} == {schema.revisions()[-1]}
    finally:
        for name in names:
            postgres.drop(name)


async def test_a_read_only_log_writes_nothing(postgres_database: TemporaryPostgres) -> None:
    async with await postgres_database.open() as log:
        await log.append(append(A, 0))
    async with await open_readonly(postgres_database.url) as log:
        assert await log.head(A) == 1
        assert await log.tables_between(bytes(16), b"\xff" * 16, limit=2) == [A]
        with pytest.raises(DatabaseError, match="read-only"):
            await log.fetch("UPDATE stream SET projected = 0 RETURNING id")


def test_alembic_takes_the_address_as_an_argument(empty: str) -> None:
    alembic = [sys.executable, "-m", "alembic", "-x", f"database={empty}"]
    for command in (["upgrade", "head"], ["check"], ["downgrade", "0001"]):
        output_of(*alembic, *command, cwd=ROOT)


def test_the_documentation_of_shards_names_every_table(
    postgres_database: TemporaryPostgres,
) -> None:
    readme = (ROOT / "dealer" / "eventlog" / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## In shards\n")[1].split("\n## ")[0]
    distributed = section.split("are distributed by it")[0]
    found = postgres_database.execute(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
    )
    assert ("archived",) in found
    for (table,) in found:
        assert f"`{table}`" in section, table
    keyed = postgres_database.execute(
        "SELECT table_name::text FROM information_schema.columns"
        " JOIN pg_tables ON tablename = table_name AND schemaname = table_schema"
        " WHERE column_name = 'stream' AND table_schema = current_schema()"
    )
    for (table,) in keyed:
        assert f"`{table}`" in distributed, f"{table} belongs to one table's shard"
