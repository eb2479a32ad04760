"""Two versions of the program on one database: the older one rejects unknown schemas and events."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from dealer.errors import SchemaTooNew, UnknownEvent
from dealer.eventlog import schema
from dealer.eventlog.backends import open_readonly
from dealer.game.commands import TakeSeat
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions

from .conftest import Ask, Played


@contextmanager
def older(monkeypatch: pytest.MonkeyPatch, *, by: int = 1) -> Iterator[str]:
    """Simulate a program without the newest migrations; the newest revision that it knows."""
    known = schema.revisions()[:-by]
    with monkeypatch.context() as patch:
        patch.setattr(schema, "revisions", lambda: known)
        yield known[-1]


@pytest.mark.slow
def test_an_older_program_does_not_open_a_newer_schema(
    ask: Ask, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = played.file.read_bytes()
    with older(monkeypatch) as newest:
        for command in (("serve", "--port", 0, "--ops-port", 0), ("tables",), ("rebuild",)):
            answer = ask(*command, "--database", played.url)
            assert answer.code == 1
            assert f"newest known here is {newest}" in answer.err
            assert "newer version of this program" in answer.err
    assert played.file.read_bytes() == before


def to(revision: str, file: Path, *, how: str = "upgrade") -> None:
    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(schema.scripts()))
        getattr(command, how)(config, revision)
        connection.commit()
    engine.dispose()


def test_a_running_process_continues_after_a_schema_expansion(tmp_path: Path) -> None:
    """A process that opened before the newest migration does not use what it adds."""
    file = tmp_path / "dealer.db"
    to("0001", file)
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.execute("INSERT INTO stream (table_id, version, projected) VALUES (x'01', 0, 0)")
        prepared = old.execute("SELECT count(*) FROM event")
        prepared.close()
        to("head", file)
        old.execute(
            "INSERT INTO event (stream, version, type, schema, at, public)"
            " VALUES (1, 1, 'TableOpened', 1, 0, '{}')"
        )
        old.execute("UPDATE stream SET version = 1")
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            old.execute("DELETE FROM event")
    to("0001", file, how="downgrade")
    with (
        closing(sqlite3.connect(file)) as old,
        pytest.raises(sqlite3.IntegrityError, match="never changed"),
    ):
        old.execute("DELETE FROM event")


def test_an_upgrade_of_the_schema_is_in_the_journal(ask: Ask, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    to("0001", tmp_path / "dealer.db")
    assert "older version" in ask("journal", "--database", url).err
    answer = ask("migrate", "--database", url, "--operator", "Zoe")
    assert answer.out.startswith("The schema was 0001 and is now ")
    (line,) = ask("journal", "--database", url).lines
    assert "Zoe" in line
    assert "migrate" in line
    assert ask("migrate", "--database", url).code == 0
    assert ask("journal", "--database", url).lines == [line]


def test_an_unknown_event_makes_only_its_table_unavailable(played: Played) -> None:
    """Only the table with the unknown event becomes unavailable."""
    with closing(sqlite3.connect(played.file)) as newer, newer:
        (number, version) = newer.execute(
            "SELECT id, version FROM stream WHERE hex(table_id) = upper(?)", (played.open,)
        ).fetchone()
        newer.execute(
            "INSERT INTO event (stream, version, type, schema, at, public)"
            " VALUES (?, ?, 'CardsBurnt', 1, 9999999999999, '{}')",
            (number, version + 1),
        )
        newer.execute("UPDATE stream SET version = version + 1 WHERE id = ?", (number,))

    async def open_both() -> None:
        async with open_service(played.url, ServiceOptions(house="house.example")) as service:
            with pytest.raises(UnknownEvent, match="upgrade this one"):
                await service.lifecycle.load(played.open)
            live_table, _ = await service.open_table({})
            await service.execute(live_table, TakeSeat("Ada"))

    asyncio.run(open_both())


def test_a_read_only_log_refuses_a_newer_schema_as_well(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    with older(monkeypatch), pytest.raises(SchemaTooNew):
        asyncio.run(open_readonly(played.url))
