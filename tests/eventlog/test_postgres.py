"""The traps of a server that several houses share: its locks, its defaults, who may do what."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.event import listen, remove

from dealer.config import Settings
from dealer.errors import DatabaseAway, DatabaseError, DatabaseLocked, DatabaseReadOnly, SetupError
from dealer.eventlog import Append, Appended, Conflict, Known, Log, postgres_batch
from dealer.eventlog.faults import explain
from dealer.eventlog.postgres_batch import Batch
from dealer.eventlog.server import Server, check_address, numbered
from tests.eventlog.asked import A, B, C, append, row
from tests.eventlog.conftest import PostgresHouse


@pytest.fixture
def place(server_place: PostgresHouse) -> PostgresHouse:
    return server_place


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET public = 'forged'",
        "UPDATE event SET hidden = NULL WHERE version = 1",
        "DELETE FROM event WHERE version = 2",
        "TRUNCATE event",
        "INSERT INTO event SELECT * FROM event"
        " ON CONFLICT (stream, version) DO UPDATE SET public = 'forged'",
    ],
)
async def test_an_event_is_never_changed_or_deleted(place: PostgresHouse, change: str) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, "1", "2"))
        before = await log.read(A)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="never"):
            place.ask(change)

        def by_the_writer(connection: Connection) -> bool:
            connection.exec_driver_sql(change)
            return False

        with pytest.raises(DatabaseError):
            await log.schedule(by_the_writer)
        assert await log.read(A) == before
        assert await log.append(append(A, 2)) == Appended(3)


async def test_no_default_of_the_database_makes_the_log_forgetful(place: PostgresHouse) -> None:
    for setting in (
        "synchronous_commit = off",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
    ):
        place.ask(f"ALTER DATABASE {place.database} SET {setting}")
    seen: list[str] = []

    def ask(connection: Connection) -> bool:
        for name in ("transaction_isolation", "transaction_read_only"):
            seen.append(connection.exec_driver_sql(f"SHOW {name}").scalar_one())
        return False

    async with await place.open() as log:
        assert await log.append(append(A, 0)) == Appended(1)
        await log.schedule(ask)
        asked = log._writer._store._raw.fetchval("SHOW synchronous_commit")
        assert seen == ["read committed", "off"]
        loop = log._writer._store._loop
        # The writer's loop rests between batches, and this test has it all to itself.
        assert await asyncio.to_thread(loop.run_until_complete, asked) == "on"


@pytest.mark.parametrize("rows", [3, 300])
async def test_two_that_found_one_table_are_one_who_does_and_one_conflict(
    place: PostgresHouse, rows: int
) -> None:
    async with await place.open() as one, await place.open() as other:
        for number in range(20):
            table = bytes([number]) * 16
            words = [str(number)] * rows
            results = await asyncio.gather(
                one.append(append(table, 0, *words)), other.append(append(table, 0, *words))
            )
            assert sorted(map(type, results), key=str) == [Appended, Conflict]
            assert len(await one.read(table)) == rows


async def test_who_founds_what_is_there_makes_nobody_else_wait(
    place: PostgresHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of the batch go in at one go all the same."""
    alone: list[bytes] = []
    plain = postgres_batch._one

    async def one(raw: Any, request: Append, *more: Any, **settings: Any) -> Any:
        alone.append(request.table)
        return await plain(raw, request, *more, **settings)

    monkeypatch.setattr(postgres_batch, "_one", one)
    async with await place.open() as log:
        await log.append(append(A, 0))
        results = await asyncio.gather(*(log.append(append(table, 0)) for table in (B, A, C)))
        assert results == [Appended(1), Conflict(1), Appended(1)]
    assert alone == [A]


async def test_a_table_that_is_founded_by_another_at_the_last_moment_is_a_conflict(
    place: PostgresHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no head to lock, and then there is one."""
    plain = postgres_batch._one

    async def late(*which: Any, **settings: Any) -> Any:
        place.ask(f"INSERT INTO stream VALUES ('\\x{A.hex()}', DEFAULT, 7, 0)")
        return await plain(*which, **settings)

    monkeypatch.setattr(Batch, "_write_together", _refused)
    monkeypatch.setattr(postgres_batch, "_one", late)
    async with await place.open() as log:
        assert await log.append(append(A, 0)) == Conflict(7)


@pytest.mark.parametrize("expected", [1, 6])
@pytest.mark.parametrize("count", [1, 80])
async def test_a_conflict_in_a_batch_is_nobody_elses_however_they_go_in(
    place: PostgresHouse, count: int, expected: int
) -> None:
    """A few rows go in by a statement and many by COPY; both leave out what lost its race.

    Somebody was quicker there, or what the request builds on was never written.
    """
    tables = [bytes([number]) * 16 for number in range(5)]
    async with await place.open() as one, await place.open() as other:
        await asyncio.gather(*(one.append(append(table, 0)) for table in tables))
        await other.append(append(tables[2], 1, "quicker"))
        words = ["x"] * count
        wishes = [
            append(table, expected if table == tables[2] else 1, *words, command="c")
            for table in tables
        ]
        for wish in wishes:
            wish.checkpoints = ((wish.expected + count, "text\n\nline\n"),)
        results = await asyncio.gather(*map(one.append, wishes))
        assert results == [
            Conflict(2) if table == tables[2] else Appended(1 + count) for table in tables
        ]
        assert [each.public for each in await one.read(tables[2])] == ["{}", "quicker"]
        assert await one.checkpoints(tables[2]) == []
        assert await one.checkpoints(tables[3]) == [(1 + count, "text\n\nline\n")]
        again = await asyncio.gather(*map(one.append, wishes))
        assert again == [
            Conflict(2) if table == tables[2] else Known(2, b"digest of c") for table in tables
        ]


async def test_one_who_holds_a_table_is_waited_for_and_then_named(place: PostgresHouse) -> None:
    async with await place.open(busy_seconds=0.3) as log:
        await log.append(append(A, 0))
        holder = await asyncpg.connect(place.url)
        await holder.execute("BEGIN")
        await holder.fetch("SELECT * FROM stream WHERE id = $1 FOR UPDATE", A)
        with pytest.raises(DatabaseLocked, match="holds the database") as told:
            await log.append(append(A, 1))
        assert place.database in str(told.value)
        await holder.close()
        assert await log.append(append(A, 1)) == Appended(2)


async def test_text_that_the_server_cannot_keep_is_one_requests_fault(
    place: PostgresHouse,
) -> None:
    async with await place.open() as log:
        results = await asyncio.gather(
            log.append(append(A, 0, "fine")),
            log.append(append(B, 0, "a zero \0 byte")),
            log.append(Append(C, 0, [row(1)._replace(at=2**70)])),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [Appended, DatabaseError, DatabaseError]
        assert await log.heads([A, B, C]) == {A: 1}


async def _refused(*_: object) -> None:
    raise asyncpg.FeatureNotSupportedError("not for tables of several shards")


# Which way each statement on the way of a command finds its rows.
_BY_TABLE = re.compile(
    r"\b(stream|id) = (\$1|ANY\(\$1)|unnest\(\$1::bytea\[\]|^INSERT INTO .*VALUES \(\$1"
)
_NO_TABLE = re.compile(r"^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET LOCAL)|\bFROM house\b")
_OURS = re.compile(r"\b(stream|event|checkpoint|house|tables|seats|moves)\b")


@pytest.mark.parametrize("shards", [False, True])
async def test_no_query_of_the_hot_path_crosses_tables(
    place: PostgresHouse, monkeypatch: pytest.MonkeyPatch, shards: bool
) -> None:
    """So the log shards as it is: each statement names the tables that it is about.

    Where a statement about tables of several shards is refused, each is about one table alone.
    """
    if shards:
        monkeypatch.setattr(Batch, "_write_together", _refused)
    asked: list[str] = []
    connect = Server.connect

    async def listening(self: Server, **settings: str) -> Any:
        connection = await connect(self, **settings)
        connection.add_query_logger(lambda record: asked.append(record.query.strip()))
        return connection

    def heard(conn: object, cursor: object, statement: str, *_: object) -> None:
        asked.append(numbered(statement).strip())

    monkeypatch.setattr(Server, "connect", listening)
    listen(Engine, "before_cursor_execute", heard)
    async with await place.open() as log, await place.open() as other:
        asked.clear()
        noted = append(A, 0, "1", "2", command="x")
        noted.checkpoints = ((2, "text\n\nline\n"),)
        await asyncio.gather(log.append(noted), log.append(append(B, 0)))
        await log.append(append(C, 0, *["many"] * 300))
        await other.append(append(A, 0, command="x"))
        await other.append(append(A, 2))
        await asyncio.gather(log.append(append(A, 2, command="y")), log.append(append(B, 0)))
        await log.put_note(A, 2, "text\n\nanother\n")
        await log.read(A)
        await log.heads([A, B])
        await log.head(A)
        await log.find_command(A, "x")
        await log.checkpoints(A)
        await log.newest_checkpoint(A)
        await log.put_house("ready", b"")
    remove(Engine, "before_cursor_execute", heard)
    ours = [each for each in asked if _OURS.search(each) and not _NO_TABLE.search(each)]
    assert len(set(ours)) >= 12
    assert any("FROM unnest" in each and "UPDATE stream" in each for each in ours) != shards
    for statement in ours:
        assert not (shards and "$1::bytea[]" in statement and "UPDATE" in statement)
        if not statement.startswith("INSERT INTO house"):
            assert _BY_TABLE.search(statement), statement
    assert not _BY_TABLE.search("SELECT version FROM event WHERE version > $1")


async def test_a_statement_that_a_migration_has_overtaken_is_prepared_anew(
    place: PostgresHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0))
        plain = Batch._write_together
        calls: list[object] = []

        async def once(self: Batch, raw: Any) -> None:
            calls.append(raw)
            if len(calls) == 1:
                raise asyncpg.InvalidCachedStatementError("cached plan must not change")
            await plain(self, raw)

        monkeypatch.setattr(Batch, "_write_together", once)
        assert await log.append(append(A, 1)) == Appended(2)
        assert await log.append(append(A, 2)) == Appended(3)
        assert len(calls) == 2, "from then on each table was written alone"


def test_an_address_is_shown_without_its_password() -> None:
    secret = "postgresql://house:s3cret@db.example:5433/dealer?sslmode=require&passfile=s3cret"
    assert check_address(secret) == "postgresql://house@db.example:5433/dealer"
    assert "s3cret" not in repr(Settings(database=secret))
    for wrong in (
        "postgresql://u:s3cret@host",
        "postgresql://u:s3cret@h:s3cret/x",
        "mysql://u:s3cret@h/x",
    ):
        with pytest.raises(SetupError) as told:
            check_address(wrong)
        assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg"])
async def test_an_address_may_be_written_as_others_write_it(
    place: PostgresHouse, scheme: str
) -> None:
    url = scheme + place.url.removeprefix("postgresql")
    async with await Log.open(url) as log:
        assert await log.head(A) is None


@pytest.mark.parametrize("sign", ["@", "/", "#", "?", "[", "@/", "?x=1@"])
def test_a_password_that_was_not_written_right_is_shown_nowhere(sign: str) -> None:
    for host in ("h", "h:5433", "/"):
        with pytest.raises(SetupError, match="not understood") as told:
            Server(f"postgresql://u:a{sign}S3CRET@{host}/d")
        assert "S3CRET" not in str(told.value)
    if sign != "[":
        assert "%40 %2F %23 %3F %25" in str(told.value)
        assert Server(f"postgresql://u:a{quote(sign, safe='')}S3CRET@h/d").name.endswith("u@h/d")


@pytest.mark.parametrize(
    ("option", "told"),
    [("nonsense=1", "nonsense"), ("sslmode=loud", "sslmode"), ("work_mem=much", "work_mem")],
)
async def test_an_option_that_makes_no_sense_is_named(
    place: PostgresHouse, option: str, told: str
) -> None:
    url = f"{place.url}{'&' if '?' in place.url else '?'}{option}"
    with pytest.raises(DatabaseError, match=f"option that is not known.*: {told}[.]"):
        await Log.open(url)


def test_an_option_without_a_value_is_none() -> None:
    with pytest.raises(SetupError, match="not understood"):
        Server("postgresql://u@h/d?nonsense")


async def test_what_is_not_there_or_not_allowed_is_told(place: PostgresHouse) -> None:
    nowhere = place.server.url("not_there")
    with pytest.raises(DatabaseError, match=r"There is no database postgresql://.*createdb"):
        await Log.open(nowhere)
    name = f"guest_{place.database}"
    place.ask(f"CREATE ROLE {name} LOGIN")
    try:
        with pytest.raises(DatabaseReadOnly, match="rights"):
            async with await Log.open(_as_user(place.url, name)) as log:
                await log.append(append(A, 0))
    finally:
        place.ask(f"DROP ROLE {name}")


def _as_user(url: str, user: str) -> str:
    return re.sub(r"//[^@]*@", f"//{user}@", url)


async def test_why_a_server_is_not_reached_is_told(tmp_path: Path) -> None:
    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"N")
        writer.close()

    async with await asyncio.start_server(no_tls, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        for place, why in (
            ("u@nowhere.invalid/d", "there is no such host"),
            (f"u@/d?host={tmp_path}", "no server listens there"),
            (f"u@127.0.0.1:{port}/d?sslmode=require", "offers no TLS"),
        ):
            with pytest.raises(DatabaseAway, match=why) as told:
                await Log.open(f"postgresql://{place}", busy_seconds=0)
            assert "then try again" in str(told.value)
    with pytest.raises(DatabaseAway, match="no server listens there"):
        await Log.open(f"postgresql://u@127.0.0.1:{port}/d", busy_seconds=0)


def test_no_sentence_tells_what_was_in_the_rows() -> None:
    cause = asyncpg.UniqueViolationError("Key (public)=(As Kd) already exists")
    assert "As" not in str(explain(cause, name="postgresql://h/x"))


def test_each_question_mark_is_a_value() -> None:
    assert numbered("SELECT ? FROM x WHERE y = ?") == "SELECT $1 FROM x WHERE y = $2"
