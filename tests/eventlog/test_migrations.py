"""Migrations: they create the declared schema, and databases of other programs are not changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Column, Connection, Integer, Table, create_engine

from dealer.errors import DatabaseError, SchemaTooNew
from dealer.eventlog import Appended, schema
from dealer.projector.declared import metadata
from tests.eventlog.conftest import TemporarySqlite
from tests.eventlog.requests import A, append
from tests.harness.database_check import check_schema
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database(sqlite_database: TemporarySqlite) -> TemporarySqlite:
    return sqlite_database


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path / 'new.db'}")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


def test_the_names_of_the_tables_are_known() -> None:
    assert sorted(schema.TABLES) == sorted(metadata.tables)


def test_the_migrations_create_the_declared_schema(empty: Connection) -> None:
    assert schema.current_revision(empty) is None
    assert not schema.is_newest(schema.current_revision(empty))
    schema.upgrade(empty)
    assert schema.current_revision(empty) == schema.revisions()[-1]
    assert schema.is_newest(schema.current_revision(empty))
    check_schema(empty)


def test_the_check_finds_a_table_that_no_migration_creates(empty: Connection) -> None:
    schema.upgrade(empty)
    forgotten = Table("forgotten", metadata, Column("id", Integer, primary_key=True))
    try:
        with pytest.raises(CommandError, match="forgotten"):
            check_schema(empty)
    finally:
        metadata.remove(forgotten)


def test_the_order_of_the_files_is_that_of_alembic() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.scripts()))
    walked = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]
    assert schema.revisions() == walked[::-1]


def test_a_failed_migration_leaves_no_change(
    empty: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("", "versions"):
        (tmp_path / "broken" / folder).mkdir(exist_ok=True)
        for file in (schema.scripts() / folder).glob("*.py"):
            (tmp_path / "broken" / folder / file.name).write_bytes(file.read_bytes())
    (tmp_path / "broken/versions/9999_broken.py").write_text(
        f"from alembic import op\nrevision = '9999'\ndown_revision = {schema.revisions()[-1]!r}\n"
        "def upgrade():\n    op.execute('CREATE TABLE half (id INTEGER)')\n    op.execute('x')\n"
    )
    monkeypatch.setattr(schema, "scripts", lambda: tmp_path / "broken")
    empty.exec_driver_sql("BEGIN IMMEDIATE")
    with pytest.raises(Exception, match="syntax error"):
        schema.upgrade(empty)
    empty.exec_driver_sql("ROLLBACK")
    assert schema.current_revision(empty) is None
    assert empty.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0


async def test_a_database_of_a_newer_version_is_refused(database: TemporarySqlite) -> None:
    with database.connect() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9000'")
    connection.close()
    with pytest.raises(SchemaTooNew, match=r"9000.*install"):
        await database.open()


async def test_a_database_of_another_program_is_refused(database: TemporarySqlite) -> None:
    database.file.unlink()
    with database.connect() as connection:
        connection.execute("CREATE TABLE recipes (id INTEGER)")
    with pytest.raises(DatabaseError, match="another program"):
        await database.open()
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    connection.close()


async def test_a_new_file_is_migrated_when_it_is_opened(database: TemporarySqlite) -> None:
    database.file.unlink()
    async with await database.open() as log:
        assert await log.append(append(A, 0)) == Appended(1)


@pytest.mark.slow
def test_a_current_database_is_opened_without_alembic(database: TemporarySqlite) -> None:
    program = (
        "import asyncio, sys\n"
        "from dealer.eventlog import Log\n"
        "async def main():\n"
        "    await (await Log.open(sys.argv[1])).close()\n"
        "asyncio.run(main())\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program, database.url], cwd=root).returncode == 0


@pytest.mark.slow
def test_alembic_reads_the_address_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "named.db"
    environment = os.environ | {"DEALER_DATABASE_URL": f"sqlite:///{file}"}
    output_of(sys.executable, "-m", "alembic", "upgrade", "head", cwd=ROOT, env=environment)
    with create_engine(f"sqlite:///{file}").connect() as connection:
        assert schema.is_newest(schema.current_revision(connection))
    connection.engine.dispose()


@pytest.mark.slow
def test_alembic_takes_the_address_as_an_argument(tmp_path: Path) -> None:
    file = tmp_path / "by-hand.db"
    alembic = [sys.executable, "-m", "alembic", "-x", f"database=sqlite:///{file}"]
    for command in (["upgrade", "head"], ["check"]):
        output_of(*alembic, *command, cwd=ROOT)
    with create_engine(f"sqlite:///{file}").connect() as connection:
        assert schema.is_newest(schema.current_revision(connection))
    connection.engine.dispose()
