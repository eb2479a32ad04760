"""The shelves: the migrations make what the code declares, and the unknown is not touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Column, Connection, Integer, Table, create_engine

from dealer.errors import DatabaseError, DatabaseNew
from dealer.eventlog import Appended, migrate
from dealer.eventlog.schema import metadata
from tests.eventlog.asked import A, append
from tests.eventlog.conftest import SqliteHouse


@pytest.fixture
def place(file_place: SqliteHouse) -> SqliteHouse:
    return file_place


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path / 'new.db'}")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
    engine.dispose()


def test_after_upgrade_head_nothing_is_left_to_migrate(empty: Connection) -> None:
    assert migrate.current(empty) is None
    assert not migrate.is_current(empty)
    migrate.upgrade(empty)
    assert migrate.current(empty) == migrate.revisions()[-1]
    assert migrate.is_current(empty)
    migrate.check(empty)


def test_the_check_sees_a_table_that_no_migration_makes(empty: Connection) -> None:
    migrate.upgrade(empty)
    forgotten = Table("forgotten", metadata, Column("id", Integer, primary_key=True))
    try:
        with pytest.raises(CommandError, match="forgotten"):
            migrate.check(empty)
    finally:
        metadata.remove(forgotten)


def test_the_names_of_the_files_are_the_history_that_alembic_sees() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.scripts()))
    walked = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]
    assert migrate.revisions() == walked[::-1]


def test_a_migration_that_fails_leaves_nothing(
    empty: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("", "versions"):
        (tmp_path / "broken" / folder).mkdir(exist_ok=True)
        for file in (migrate.scripts() / folder).glob("*.py"):
            (tmp_path / "broken" / folder / file.name).write_bytes(file.read_bytes())
    (tmp_path / "broken/versions/9999_broken.py").write_text(
        f"from alembic import op\nrevision = '9999'\ndown_revision = {migrate.revisions()[-1]!r}\n"
        "def upgrade():\n    op.execute('CREATE TABLE half (id INTEGER)')\n    op.execute('x')\n"
    )
    monkeypatch.setattr(migrate, "scripts", lambda: tmp_path / "broken")
    empty.exec_driver_sql("BEGIN IMMEDIATE")
    with pytest.raises(Exception, match="syntax error"):
        migrate.upgrade(empty)
    empty.exec_driver_sql("ROLLBACK")
    assert migrate.current(empty) is None
    assert empty.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0


async def test_a_database_of_a_newer_program_is_not_touched(place: SqliteHouse) -> None:
    with place.outside() as database:
        database.execute("UPDATE alembic_version SET version_num = '9000'")
    database.close()
    with pytest.raises(DatabaseNew, match=r"9000.*install"):
        await place.open()


async def test_a_database_of_another_program_is_not_touched(place: SqliteHouse) -> None:
    place.file.unlink()
    with place.outside() as database:
        database.execute("CREATE TABLE recipes (id INTEGER)")
    with pytest.raises(DatabaseError, match="another program"):
        await place.open()
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    database.close()


async def test_a_new_database_migrates_itself(place: SqliteHouse) -> None:
    place.file.unlink()
    async with await place.open() as log:
        assert await log.append(append(A, 0)) == Appended(1)


def test_a_current_database_is_opened_without_alembic(place: SqliteHouse) -> None:
    program = (
        "import asyncio, sys\n"
        "from dealer.eventlog import Log\n"
        "async def main():\n"
        "    await (await Log.open(sys.argv[1])).close()\n"
        "asyncio.run(main())\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program, place.url], cwd=root).returncode == 0


def test_by_hand_the_address_is_an_argument(tmp_path: Path) -> None:
    file = tmp_path / "by-hand.db"
    root = Path(__file__).parents[2]
    for command in (["upgrade", "head"], ["check"]):
        subprocess.run(
            [sys.executable, "-m", "alembic", "-x", f"database=sqlite:///{file}", *command],
            cwd=root,
            check=True,
            capture_output=True,
        )
    with create_engine(f"sqlite:///{file}").connect() as connection:
        assert migrate.is_current(connection)
    connection.engine.dispose()
