"""Log on PostgreSQL: triggers, defaults, locks, conflicts in batches, addresses and privileges."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine
from sqlalchemy.event import listen, remove

from dealer.config.settings import Settings
from dealer.errors import (
    ConfigurationError,
    DatabaseError,
    DatabaseLocked,
    DatabaseReadOnly,
    DatabaseUnavailable,
)
from dealer.eventlog import Append, Appended, Conflict, Duplicate, Log
from dealer.eventlog.backends import check_address
from dealer.eventlog.db_errors import translate
from dealer.eventlog.postgres import batch as postgres_batch
from dealer.eventlog.postgres.batch import Batch
from dealer.eventlog.postgres.database import PostgresDatabase, to_dollar_params
from dealer.eventlog.protocols import Connection
from tests.eventlog.conftest import TemporaryPostgres
from tests.eventlog.requests import A, B, C, append, row
from tests.harness.cluster import skip_on_cluster


@pytest.fixture
def database(postgres_database: TemporaryPostgres) -> TemporaryPostgres:
    return postgres_database


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
async def test_an_event_is_never_changed_or_deleted(
    database: TemporaryPostgres, change: str
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, "1", "2"))
        before = await log.read(A)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="never"):
            database.execute(change)

        def change_event(connection: Connection) -> bool:
            connection.exec_driver_sql(change)
            return False

        with pytest.raises(DatabaseError):
            await log.run_when_idle(change_event)
        assert await log.read(A) == before
        assert await log.append(append(A, 2)) == Appended(3)


async def test_defaults_of_the_database_do_not_weaken_the_log(
    database: TemporaryPostgres,
) -> None:
    for setting in (
        "synchronous_commit = off",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
    ):
        database.execute(f"ALTER DATABASE {database.name} SET {setting}")
    values: list[str] = []

    def read_settings(connection: Connection) -> bool:
        for name in ("transaction_isolation", "transaction_read_only"):
            values.append(connection.exec_driver_sql(f"SHOW {name}").scalar_one())
        return False

    async with await database.open() as log:
        assert await log.append(append(A, 0)) == Appended(1)
        await log.run_when_idle(read_settings)
        store: Any = log.writer._store
        commit_setting = store._session._raw.fetchval("SHOW synchronous_commit")
        assert values == ["read committed", "off"]
        loop = store._loop
        # The writer's event loop does not run between batches, so this test may run it.
        assert await asyncio.to_thread(loop.run_until_complete, commit_setting) == "on"


@pytest.mark.parametrize("rows", [3, 300])
async def test_of_two_nodes_that_create_a_table_one_gets_a_conflict(
    database: TemporaryPostgres, rows: int
) -> None:
    async with await database.open() as one, await database.open() as other:
        for number in range(20):
            table = bytes([number]) * 16
            words = [str(number)] * rows
            results = await asyncio.gather(
                one.append(append(table, 0, *words)), other.append(append(table, 0, *words))
            )
            assert sorted(map(type, results), key=str) == [Appended, Conflict]
            assert len(await one.read(table)) == rows


async def test_creating_an_existing_table_delays_no_other_append(
    database: TemporaryPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other appends of the batch are still written together."""
    alone: list[bytes] = []
    write_one = postgres_batch._write_one

    async def recorded(raw: Any, request: Append, *more: Any, **settings: Any) -> Any:
        alone.append(request.table)
        return await write_one(raw, request, *more, **settings)

    monkeypatch.setattr(postgres_batch, "_write_one", recorded)
    async with await database.open() as log:
        await log.append(append(A, 0))
        results = await asyncio.gather(*(log.append(append(table, 0)) for table in (B, A, C)))
        assert results == [Appended(1), Conflict(1), Appended(1)]
    assert alone == [A]


async def test_a_table_created_by_another_node_during_the_write_is_a_conflict(
    database: TemporaryPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no head to lock, and then the other node commits one."""
    write_one = postgres_batch._write_one

    async def after_another_node(*arguments: Any, **settings: Any) -> Any:
        database.execute(
            f"INSERT INTO stream (id, version, projected) VALUES ('\\x{A.hex()}', 7, 0)"
        )
        return await write_one(*arguments, **settings)

    monkeypatch.setattr(Batch, "_write_together", _leave_all)
    monkeypatch.setattr(postgres_batch, "_write_one", after_another_node)
    async with await database.open() as log:
        assert await log.append(append(A, 0)) == Conflict(7)


@pytest.mark.parametrize("expected", [1, 6])
@pytest.mark.parametrize("count", [1, 80])
async def test_a_conflict_in_a_batch_affects_no_other_append(
    database: TemporaryPostgres, count: int, expected: int
) -> None:
    """A few rows are written by a statement and many by COPY; both leave out the lost append.

    Another node was quicker, or the version that the append expects was never written.
    """
    tables = [bytes([number]) * 16 for number in range(5)]
    async with await database.open() as one, await database.open() as other:
        await asyncio.gather(*(one.append(append(table, 0)) for table in tables))
        await other.append(append(tables[2], 1, "quicker"))
        words = ["x"] * count
        requests = [
            append(table, expected if table == tables[2] else 1, *words, command="c")
            for table in tables
        ]
        for request in requests:
            request.checkpoints = ((request.expected + count, "text\n\nline\n"),)
        results = await asyncio.gather(*map(one.append, requests))
        assert results == [
            Conflict(2) if table == tables[2] else Appended(1 + count) for table in tables
        ]
        assert [each.public for each in await one.read(tables[2])] == ["{}", "quicker"]
        assert await one.checkpoints(tables[2]) == []
        assert await one.checkpoints(tables[3]) == [(1 + count, "text\n\nline\n")]
        again = await asyncio.gather(*map(one.append, requests))
        assert again == [
            Conflict(2) if table == tables[2] else Duplicate(2, b"digest of c") for table in tables
        ]


async def test_an_append_waits_for_a_locked_table_and_then_fails(
    database: TemporaryPostgres,
) -> None:
    async with await database.open(busy_seconds=0.3) as log:
        await log.append(append(A, 0))
        holder = await asyncpg.connect(database.url)
        await holder.execute("BEGIN")
        await holder.fetch("SELECT * FROM stream WHERE id = $1 FOR UPDATE", A)
        with pytest.raises(DatabaseLocked, match="holds a lock on the database") as raised:
            await log.append(append(A, 1))
        assert database.name in str(raised.value)
        await holder.close()
        assert await log.append(append(A, 1)) == Appended(2)


async def test_text_that_the_server_cannot_store_fails_one_request(
    database: TemporaryPostgres,
) -> None:
    async with await database.open() as log:
        results = await asyncio.gather(
            log.append(append(A, 0, "fine")),
            log.append(append(B, 0, "a zero \0 byte")),
            log.append(Append(C, 0, [replace(row(1), at=2**70)])),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [Appended, DatabaseError, DatabaseError]
        assert await log.heads([A, B, C]) == {A: 1}


async def _leave_all(*_: object) -> None:
    """Write nothing together, so that each request is written singly."""


# How each statement of a command finds its rows.
_BY_TABLE = re.compile(
    r"\b(stream|id) = (\$1|ANY\(\$1)|unnest\((\$1::|CAST\(\$1 AS )bytea\[\]"
    r"|^INSERT INTO .*VALUES \(\$1"
)
_NO_TABLE = re.compile(
    r"^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET LOCAL)|\bFROM house\b|\bpg_dist_"
)
_OURS = re.compile(r"\b(stream|event|checkpoint|house|tables|seats|moves)\b")


@pytest.mark.parametrize("shards", [False, True])
async def test_each_query_of_a_command_names_its_tables(
    database: TemporaryPostgres, monkeypatch: pytest.MonkeyPatch, shards: bool
) -> None:
    """So the log can be sharded: each statement names the tables that it reads or writes.

    Where the tables of a batch are not written together, each statement is for one table.
    """
    if shards:
        monkeypatch.setattr(Batch, "_write_together", _leave_all)
    else:
        skip_on_cluster(database.server, "there a function writes what belongs together")
    queries: list[str] = []
    connect = PostgresDatabase.connect_to

    async def connect_recorded(self: PostgresDatabase, *arguments: Any) -> Any:
        connection = await connect(self, *arguments)
        connection.add_query_logger(lambda record: queries.append(record.query.strip()))
        return connection

    def record(conn: object, cursor: object, statement: str, *_: object) -> None:
        queries.append(to_dollar_params(statement).strip())

    monkeypatch.setattr(PostgresDatabase, "connect_to", connect_recorded)
    listen(Engine, "before_cursor_execute", record)
    async with await database.open() as log, await database.open() as other:
        queries.clear()
        signed = append(A, 0, "1", "2", command="x")
        signed.checkpoints = ((2, "text\n\nline\n"),)
        await asyncio.gather(log.append(signed), log.append(append(B, 0)))
        await log.append(append(C, 0, *["many"] * 300))
        await other.append(append(A, 0, command="x"))
        await other.append(append(A, 2))
        await asyncio.gather(log.append(append(A, 2, command="y")), log.append(append(B, 0)))
        await log.put_checkpoint(A, 2, "text\n\nanother\n")
        await log.read(A)
        await log.heads([A, B])
        await log.head(A)
        await log.find_command(A, "x")
        await log.checkpoints(A)
        await log.newest_checkpoint(A)
        await log.put_metadata("ready", b"")
    remove(Engine, "before_cursor_execute", record)
    ours = [each for each in queries if _OURS.search(each) and not _NO_TABLE.search(each)]
    assert len(set(ours)) >= 12
    assert any("FROM unnest" in each and "UPDATE stream" in each for each in ours) != shards
    for statement in ours:
        assert not (shards and "$1::bytea[]" in statement and "UPDATE" in statement)
        if not statement.startswith("INSERT INTO house"):
            assert _BY_TABLE.search(statement), statement
    assert not _BY_TABLE.search("SELECT version FROM event WHERE version > $1")


async def test_a_statement_invalidated_by_a_migration_is_prepared_again(
    database: TemporaryPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        write_together = Batch._write_together
        calls: list[object] = []

        async def fail_once(self: Batch, raw: Any) -> None:
            calls.append(raw)
            if len(calls) == 1:
                raise asyncpg.InvalidCachedStatementError("cached plan must not change")
            await write_together(self, raw)

        monkeypatch.setattr(Batch, "_write_together", fail_once)
        assert await log.append(append(A, 1)) == Appended(2)
        assert await log.append(append(A, 2)) == Appended(3)
        assert len(calls) == 2, "the batch is written together again"


def test_an_address_is_shown_without_its_password() -> None:
    secret = "postgresql://house:s3cret@db.example:5433/dealer?sslmode=require&passfile=s3cret"
    assert check_address(secret) == "postgresql://house@db.example:5433/dealer"
    assert "s3cret" not in repr(Settings(database=secret))
    for invalid in (
        "postgresql://u:s3cret@host",
        "postgresql://u:s3cret@h:s3cret/x",
        "mysql://u:s3cret@h/x",
    ):
        with pytest.raises(ConfigurationError) as raised:
            check_address(invalid)
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg"])
async def test_an_address_may_have_the_schemes_of_other_programs(
    database: TemporaryPostgres, scheme: str
) -> None:
    url = scheme + database.url.removeprefix("postgresql")
    async with await Log.open(url) as log:
        assert await log.head(A) is None


@pytest.mark.parametrize("sign", ["@", "/", "#", "?", "[", "@/", "?x=1@"])
def test_a_password_that_is_not_quoted_is_not_shown(sign: str) -> None:
    for host in ("h", "h:5433", "/"):
        with pytest.raises(ConfigurationError, match="is invalid") as raised:
            PostgresDatabase(f"postgresql://u:a{sign}S3CRET@{host}/d")
        assert "S3CRET" not in str(raised.value)
    if sign != "[":
        assert "%40 %2F %23 %3F %25" in str(raised.value)
        assert PostgresDatabase(f"postgresql://u:a{quote(sign, safe='')}S3CRET@h/d").name.endswith(
            "u@h/d"
        )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("sslmode=loud", "invalid value for an option: sslmode[.]"),
        ("options=-c%20work_mem=much", "invalid value for an option: options[.]"),
    ],
)
async def test_an_invalid_value_is_named(
    database: TemporaryPostgres, option: str, says: str
) -> None:
    url = f"{database.url}{'&' if '?' in database.url else '?'}{option}"
    with pytest.raises(DatabaseError, match=says):
        await Log.open(url)


async def test_an_address_may_have_settings_of_the_server(database: TemporaryPostgres) -> None:
    more = "application_name=night&options=-c%20work_mem=77kB"
    url = f"{database.url}{'&' if '?' in database.url else '?'}{more}"
    connection = await PostgresDatabase(url).connect()
    try:
        assert await connection.fetchval("SHOW work_mem") == "77kB"
        assert await connection.fetchval("SHOW application_name") == "night"
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://u@h/d?nonsense=1", "has an unknown option: nonsense[.]"),
        ("postgresql://u@h/d?x.db", "has an unknown option: x.db[.] .* a [?] in a name %3F"),
        ("postgresql://u@h/d?sslmode=require&SSLMODE=x", "has an unknown option: SSLMODE[.]"),
        ("postgresql://u@h/d?connect_timeout=5", "has an unknown option: connect_timeout[.]"),
        ("postgresql://u@h/d?work_mem=64MB", "options=-c%20NAME=VALUE"),
        ("postgresql://u@h/d?dbname=other", "has an unknown option: dbname[.]"),
        ("postgresql://u@h/d?sslmode", "is invalid: sslmode has no value"),
        ("postgresql://u@h/d?sslmode=require&", "unknown option"),
        ("postgresql://u@h/d?host=other", "has two values for host;"),
        ("postgresql://u@h:99999/d", "has the port 99999; a port is a number from 1 to 65535"),
        ("postgresql://u@h:0/d", "has the port 0;"),
        ("postgresql://u@h:65536,i:5432/d", "has the port 65536;"),
        ("postgresql://u@h,i:70000/d", "has the port 70000;"),
        ("postgresql://u@h/d?port=65536", "has the port 65536;"),
        ("postgresql://u@h,i/d?port=5432,x", "has the port x;"),
        ("postgresql://u:p@h:5432/d?port=1&user=v", "has two values for port and user;"),
        ("postgresql://u@h/d#x", "is invalid; write"),
        ("postgresql://u@h/d?sslmode=require#x", "is invalid; write"),
        ("postgresql://u@h/100%", "is invalid; write"),
        ("postgresql://u:S3CRET%zz@h/d", "is invalid; write"),
    ],
)
def test_an_address_that_may_name_another_database_is_refused(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        PostgresDatabase(url)
    assert "S3CRET" not in str(raised.value)


async def test_the_name_of_a_database_is_decoded(database: TemporaryPostgres) -> None:
    name = "a?b #100%"
    place, question, options = database.url.partition("?")
    server = place.rpartition("/")[0]
    connection = await PostgresDatabase(database.url).connect()
    try:
        await connection.execute(f'CREATE DATABASE "{name}"')
        url = f"{server}/{quote(name)}{question}{options}"
        found = await PostgresDatabase(url).connect()
        try:
            assert await found.fetchval("SELECT current_database()") == name
        finally:
            await found.close()
    finally:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
        await connection.close()


async def test_missing_databases_and_privileges_are_errors(database: TemporaryPostgres) -> None:
    missing = database.server.url("not_there")
    with pytest.raises(DatabaseError, match=r"There is no database postgresql://.*createdb"):
        await Log.open(missing)
    name = f"reader_{database.name}"
    database.execute(f"CREATE ROLE {name} LOGIN")
    try:
        with pytest.raises(DatabaseReadOnly, match="privileges"):
            async with await Log.open(_as_user(database.url, name)) as log:
                await log.append(append(A, 0))
    finally:
        database.execute(f"DROP ROLE {name}")


def _as_user(url: str, user: str) -> str:
    return re.sub(r"//[^@]*@", f"//{user}@", url)


async def test_the_error_says_why_a_server_is_not_reached(tmp_path: Path) -> None:
    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"N")
        writer.close()

    async with await asyncio.start_server(no_tls, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        for address, why in (
            ("u@nowhere.invalid/d", "host name is unknown"),
            (f"u@/d?host={tmp_path}", "no server listens there"),
            (f"u@127.0.0.1:{port}/d?sslmode=require", "offers no TLS"),
        ):
            with pytest.raises(DatabaseUnavailable, match=why) as raised:
                await Log.open(f"postgresql://{address}", busy_seconds=0)
            assert "then try again" in str(raised.value)
    with pytest.raises(DatabaseUnavailable, match="no server listens there"):
        await Log.open(f"postgresql://u@127.0.0.1:{port}/d", busy_seconds=0)


def test_no_message_has_the_content_of_rows() -> None:
    cause = asyncpg.UniqueViolationError("Key (public)=(As Kd) already exists")
    assert "As" not in str(translate(cause, name="postgresql://h/x"))


def test_each_question_mark_becomes_a_numbered_parameter() -> None:
    assert to_dollar_params("SELECT ? FROM x WHERE y = ?") == "SELECT $1 FROM x WHERE y = $2"
