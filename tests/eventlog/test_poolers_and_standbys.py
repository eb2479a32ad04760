"""A connection pooler before PostgreSQL, and a standby that takes over, behind one address."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from dealer.errors import ConfigurationError, DatabaseUnavailable
from dealer.eventlog import Appended, Log
from dealer.eventlog.backends import migrate_database
from dealer.eventlog.postgres import database as database_module
from dealer.eventlog.postgres.database import PostgresDatabase
from tests.eventlog.requests import A, append
from tests.harness.ports import unused_port
from tests.harness.postgres import OwnServer, own_server, pooler

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server


async def test_a_pooler_of_sessions_works(server: OwnServer) -> None:
    with pooler(server, mode="session") as base:
        url = base + server.empty()
        await migrate_database(url)
        async with await Log.open(url) as log:
            assert isinstance(await log.append(append(A, 0, "1", "2")), Appended)
            assert [row.version for row in await log.read(A)] == [1, 2]
            assert await log.fetch("SHOW jit") == [("off",)]


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_a_pooler_of_transactions_is_refused(server: OwnServer, mode: str) -> None:
    refused = pytest.raises(ConfigurationError, match="set its pool_mode to session")
    with pooler(server, mode=mode) as base, refused:
        await Log.open(base + server.database())


async def test_a_standby_takes_over_behind_one_address() -> None:
    with (
        own_server(safe=True, port=unused_port()) as primary,
        own_server(safe=True, port=unused_port(), standby_of=primary) as standby,
    ):
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        name = primary.empty()
        url = f"postgresql://dealer@{hosts}/{name}?target_session_attrs=read-write"
        await migrate_database(url)
        async with await Log.open(url, synchronous="FULL", busy_seconds=30.0) as log:
            assert log.name == f"postgresql://dealer@{hosts}/{name}"
            assert isinstance(await log.append(append(A, 0, "1")), Appended)
            primary.stop("fast")  # it sends what it has written first
            standby.promote()
            assert isinstance(await log.append(append(A, 1, "2")), Appended)
            assert [row.version for row in await log.read(A)] == [1, 2]


@pytest.mark.parametrize(
    ("address", "answers"),
    [
        ("{0},{1}/{2}", True),
        ("/{2}?host=127.0.0.1,127.0.0.1&port={3},{4}", True),
        ("{0},{0}/{2}", False),
    ],
)
async def test_a_host_that_is_silent_is_left_out(
    monkeypatch: pytest.MonkeyPatch, address: str, answers: bool
) -> None:
    """A machine without power answers no packet, a frozen process accepts a connection only."""
    monkeypatch.setattr(database_module, "CONNECT_SECONDS", 2.0)
    with own_server(port=unused_port()) as other, socket.create_server(("127.0.0.1", 0)) as silent:
        ports = (silent.getsockname()[1], other.port)
        hosts = [f"127.0.0.1:{port}" for port in ports]
        name = other.empty()
        await migrate_database(other.url(name))
        url = f"postgresql://dealer@{address}".format(*hosts, name, *ports)
        if answers:
            async with await Log.open(url, busy_seconds=0.0) as log:
                assert isinstance(await log.append(append(A, 0, "1")), Appended)
        else:
            with pytest.raises(DatabaseUnavailable, match="it does not answer"):
                await Log.open(url, busy_seconds=0.0)


RECOVERING = "recovers, or is a standby; wait until its recovery has ended, then try again"


async def test_a_standby_is_said_to_be_one() -> None:
    with (
        own_server(safe=True, port=unused_port()) as primary,
        own_server(safe=True, port=unused_port(), standby_of=primary) as standby,
    ):
        name = primary.empty()
        await migrate_database(primary.url(name))
        ((written,),) = primary.ask(name, "SELECT CAST(pg_current_wal_lsn() AS text)")
        received = f"SELECT pg_last_wal_replay_lsn() >= CAST('{written}' AS pg_lsn)"
        while standby.ask("postgres", received) != [(True,)]:
            pass
        async with await Log.open(standby.url(name), busy_seconds=0.0) as log:
            with pytest.raises(DatabaseUnavailable, match=RECOVERING):
                await log.reader.identity()


@pytest.mark.parametrize("kind", [Log.open, migrate_database])
async def test_a_node_waits_for_a_server_that_recovers(
    server: OwnServer, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    url, refusals = server.url(server.empty()), 3
    await migrate_database(url)
    connect = PostgresDatabase.connect

    async def recovering(self: PostgresDatabase, **settings: str) -> Any:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise asyncpg.CannotConnectNowError("the database system is starting up")
        return await connect(self, **settings)

    monkeypatch.setattr(PostgresDatabase, "connect", recovering)
    opened = await kind(url)
    assert refusals < 0
    if isinstance(opened, Log):
        await opened.close()
    refusals = 10**9
    if kind is Log.open:
        with pytest.raises(DatabaseUnavailable, match=RECOVERING):
            await Log.open(url, busy_seconds=0.0)
