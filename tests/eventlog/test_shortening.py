"""Shortening the events of earlier releases: exact, restartable, and with every guarantee kept."""

from __future__ import annotations

import signal

import pytest
from sqlalchemy import Connection

from dealer.eventlog import Append, Appended, Known, Log, Row, event_form, shortening
from dealer.eventlog.event_form import Form
from dealer.eventlog.short_form import same
from dealer.eventlog.shortening import shorten
from tests.eventlog.conftest import TemporaryDatabase, TemporaryPostgres
from tests.eventlog.requests import A, B, other_process
from tests.eventlog.test_short_form import examples

SHORT = "SELECT count(*) FROM event WHERE length(type) = 1"
ROWS = list(examples())


async def in_form(database: TemporaryDatabase, form: Form, rows: list[Row]) -> None:
    """Give the database this form, and write the rows of table A in the canonical one."""
    async with await database.open() as log:
        await log.run_in_transaction(lambda connection: set_form(connection, Form.CANONICAL))
    async with await database.open() as log:
        assert await log.append(Append(A, 0, rows)) == Appended(len(rows))
        await log.run_in_transaction(lambda connection: set_form(connection, form))
    assert database.execute(SHORT) == [(0,)]


def set_form(connection: Connection, form: Form) -> None:
    event_form.write(connection, form)
    if form is Form.CANONICAL:
        connection.exec_driver_sql("DELETE FROM house WHERE name = 'event_form'")


async def stored_form(log: Log) -> Form:
    return event_form.parse(await log.metadata("event_form"))


async def test_events_are_shortened_and_read_as_before(database: TemporaryDatabase) -> None:
    await in_form(database, Form.CANONICAL, ROWS)
    columns = "stream, version, type, schema, at, public, commitment, hidden, command"
    before = database.execute(f"SELECT {columns} FROM events ORDER BY version")
    async with await database.open() as log:
        assert await log.read(A) == ROWS
        changed = await shorten(log, settle_seconds=0)
        assert changed == sum(row.command is not None for row in ROWS[:-2])
        assert await stored_form(log) is Form.SHORT
        assert await shorten(log, settle_seconds=0) == 0
    async with await database.open() as log:
        assert all(map(same, await log.read(A), ROWS))
        found = await log.find_command(A, ROWS[3].command or "")
        assert found is not None
        assert same(found, ROWS[3])
    assert database.execute(f"SELECT {columns} FROM events ORDER BY version") == before
    assert database.execute(SHORT) != [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
async def test_a_killed_process_is_continued_by_the_next(database: TemporaryDatabase) -> None:
    await in_form(database, Form.CANONICAL, ROWS)
    child = other_process("die_shortening", database.url, database.commit)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    ((short,),) = database.execute(SHORT)
    assert 0 < short < len(ROWS) / 2
    async with await database.open() as log:
        assert await stored_form(log) is Form.MIXED
        assert all(map(same, await log.read(A), ROWS))
        assert await shorten(log, settle_seconds=0) > 0
        assert await stored_form(log) is Form.SHORT
        assert all(map(same, await log.read(A), ROWS))


@pytest.mark.parametrize("form", [Form.CANONICAL, Form.MIXED])
async def test_a_command_of_an_earlier_release_is_known(
    database: TemporaryDatabase, form: Form
) -> None:
    await in_form(database, form, ROWS)
    end = len(ROWS)
    again = ROWS[4]._replace(version=end + 1)
    async with await database.open() as log:
        known = Known(5, ROWS[4].digest)
        assert await log.append(Append(A, end, [again])) == known
        assert await log.append(Append(A, 2, [again._replace(version=3)])) == known
        # The same id at another table is another command.
        assert await log.append(Append(B, 0, [again._replace(version=1)])) == Appended(1)
        assert isinstance(await log.append(Append(B, 1, [again._replace(version=2)])), Known)
        assert await log.head(A) == end


async def test_a_running_node_follows_the_order(postgres_database: TemporaryPostgres) -> None:
    database = postgres_database
    await in_form(database, Form.CANONICAL, ROWS[:3])
    async with await database.open() as node, await database.open() as other:
        assert await node.append(Append(B, 0, [ROWS[0]])) == Appended(1)
        assert database.execute(SHORT) == [(0,)]
        assert await shorten(other, settle_seconds=0) > 0
        version = 1
        while database.execute("SELECT count(*) FROM event WHERE type = 'S'") == [(0,)]:
            version += 1
            swap = Row(version, "CardsSwapped", 1, 0, '{"i":1,"k":0,"round":1,"step":0}')
            assert await node.append(Append(B, version - 1, [swap])) == Appended(version)
        assert await other.read(B) == await node.read(B)


@pytest.mark.parametrize(
    "change",
    [
        "type = 'D'",
        "type = 'S', public = '[51,0,1,1]'",
        "type = 'S', public = '[51,0,1,0]', at = 1",
        "type = 'S', public = '[51,0,1,0]', version = 2",
        "type = 'S', public = '[51,0,1,0]', hidden = NULL",
        "type = 'S', public = '[51,0,1,0]', command = NULL, digest = NULL",
        "type = 'S', public = '[51,0,1,0]', digest = NULL",
        "public = public",
    ],
)
async def test_only_the_same_event_replaces_one(database: TemporaryDatabase, change: str) -> None:
    public = '{"i":51,"k":0,"round":1,"step":0}'
    swap = Row(1, "CardsSwapped", 1, 0, public, b"c" * 32, b"h" * 44, "1/2", b"d" * 36)
    await in_form(database, Form.MIXED, [swap])
    with pytest.raises(Exception, match="never changed"):
        database.execute(f"UPDATE event SET {change}")
    database.execute("UPDATE event SET type = 'S', public = '[51,0,1,0]'")
    with pytest.raises(Exception, match="never changed"):
        database.execute(f"UPDATE event SET type = 'CardsSwapped', public = '{public}'")
    async with await database.open() as log:
        assert await log.read(A) == [swap]


async def test_a_slice_is_bounded(
    database: TemporaryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_form(database, Form.CANONICAL, ROWS)
    monkeypatch.setattr(shortening, "ROWS", 5)
    async with await database.open() as log:
        one = shortening.Pass(log.dialect)
        key = await log.run_in_transaction(one.slice)
        assert one.shortened == 5
        assert key is not None
        one.done(key)
        assert await log.run_in_transaction(one.slice) != key
