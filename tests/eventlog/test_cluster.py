"""A log over the servers of a Citus cluster: distribution, transactions of one worker, and faults.

The same tests as on one server run on a cluster with `DEALER_TEST_POSTGRES=citus`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from dealer.errors import (
    ConfigurationError,
    DatabaseDamaged,
    DatabaseError,
    DatabaseLocked,
    DatabaseUnavailable,
)
from dealer.eventlog import Appended, Log, ReadOnlyLog
from dealer.eventlog.backends import migrate_database, open_readonly
from dealer.eventlog.db_errors import translate
from dealer.eventlog.postgres import cluster as cluster_module
from dealer.eventlog.protocols import Connection
from dealer.projector.models import MODELS
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from tests.eventlog.requests import append
from tests.harness.cluster import SHARDS, Cluster, execute
from tests.harness.postgres import OwnServer

TABLES = 12
DISTRIBUTED = {
    "stream", "event", "checkpoint", "archived", "opener", "table_savepoint", "seat_subject",
    *(model.name for model in MODELS),
}  # fmt: skip
_LISTED = "SELECT CAST(logicalrelid AS text), partmethod::text FROM pg_dist_partition"


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    name = cluster.database()
    yield name
    cluster.drop(name)


@pytest.fixture
async def log(cluster: Cluster, database: str) -> object:
    async with await Log.open(cluster.url(database), busy_seconds=20.0) as found:
        yield found


def ids(count: int = TABLES) -> list[bytes]:
    """Ids of tables, which are at both workers."""
    return [os.urandom(16) for _ in range(count)]


async def write(log: Log, tables: list[bytes], version: int) -> None:
    """Append an event to each table, in one batch, at this version."""
    results = await asyncio.gather(*(log.append(append(each, version)) for each in tables))
    assert set(map(type, results)) == {Appended}


def worker_of(cluster: Cluster, database: str, table: bytes) -> str:
    """The folder of the worker that has a table."""
    ((folder,),) = cluster.ask(
        database,
        "SELECT nodename::text FROM pg_dist_placement JOIN pg_dist_node USING (groupid)"
        " WHERE shardid = get_shard_id_for_distribution_column('stream', $1::bytea)",
        table,
    )
    return str(folder)


def test_a_migration_distributes_an_empty_database(cluster: Cluster, database: str) -> None:
    assert set(cluster.ask(database, _LISTED)) == {(name, "h") for name in DISTRIBUTED}
    shards = cluster.ask(database, "SELECT count(*) FROM pg_dist_shard GROUP BY logicalrelid")
    assert set(shards) == {(SHARDS,)}


async def test_a_database_that_is_distributed_is_left_as_it_is(
    cluster: Cluster, database: str
) -> None:
    before = cluster.ask(database, "SELECT * FROM pg_dist_shard ORDER BY shardid")
    for shards in (SHARDS, None):
        await migrate_database(cluster.url(database), shards=shards)
    assert cluster.ask(database, "SELECT * FROM pg_dist_shard ORDER BY shardid") == before


def _without_extension(cluster: Cluster, name: str) -> None:
    cluster.ask(name, "DROP EXTENSION citus CASCADE")


def _without_workers(cluster: Cluster, name: str) -> None:
    cluster.ask(
        name, "SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node WHERE groupid > 0"
    )


def _worker_without_extension(cluster: Cluster, name: str) -> None:
    worker = cluster.workers[0]
    worker.ask("postgres", f"DROP DATABASE {name} WITH (FORCE)")
    worker.ask("postgres", f"CREATE DATABASE {name} TEMPLATE template0")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without_extension, "has no extension citus"),
        (_without_workers, "has no workers"),
        (_worker_without_extension, "in the coordinator's version"),
    ],
)
async def test_a_cluster_that_is_not_complete_is_not_used(
    cluster: Cluster, change: Callable[[Cluster, str], None], says: str
) -> None:
    name = cluster.empty()
    change(cluster, name)
    with pytest.raises((DatabaseError, ConfigurationError), match=says):
        await migrate_database(cluster.url(name), shards=SHARDS)
    assert cluster.ask(name, "SELECT 1 FROM pg_tables WHERE tablename = 'stream'") == []


async def test_what_is_distributed_already_is_not_distributed_otherwise(
    cluster: Cluster, database: str
) -> None:
    with pytest.raises(ConfigurationError, match="in 4 shards, not in 5"):
        await migrate_database(cluster.url(database), shards=5)


async def test_a_database_with_tables_is_not_distributed(cluster: Cluster) -> None:
    name = cluster.empty()
    await migrate_database(cluster.url(name))
    async with await Log.open(cluster.url(name)) as log:
        await write(log, ids(1), 0)
    with pytest.raises(ConfigurationError, match="only an empty one is distributed"):
        await migrate_database(cluster.url(name), shards=SHARDS)


async def test_a_database_that_is_distributed_in_part_is_not_opened(cluster: Cluster) -> None:
    name = cluster.empty()
    await migrate_database(cluster.url(name))
    execute(cluster.url(name), "SELECT create_distributed_table('stream', 'id')")
    with pytest.raises(ConfigurationError, match=r"distributed in part: not archived, checkpoint"):
        await Log.open(cluster.url(name))


@pytest.mark.parametrize("named", [(1,), (2, 1), (1, 0), (0, 2), (3, 2), (3, 0, 1)])
@pytest.mark.parametrize("opener", [Log.open, open_readonly])
async def test_an_address_may_name_any_servers_of_the_cluster(
    cluster: Cluster,
    database: str,
    opener: Callable[[str], Awaitable[ReadOnlyLog]],
    named: tuple[int, ...],
) -> None:
    """0 is the coordinator, 1 and 2 are workers, and at 3 there is no server."""
    hosts = [*(str(each.folder) for each in (cluster, *cluster.workers)), "/nowhere"]
    address = ",".join(hosts[each] for each in named)
    async with (
        await Log.open(cluster.url(database)) as log,
        await opener(f"postgresql://dealer@/{database}?host={address}") as other,
    ):
        await write(log, tables := ids(2), 0)
        assert await other.reader.identity() == await log.reader.identity()
        assert [row.version for row in await other.read(tables[0])] == [1]
        if isinstance(other, Log):
            await write(other, tables, 1)
            assert [row.version for row in await log.read(tables[1])] == [1, 2]


async def test_a_migration_at_a_worker_is_the_coordinators(cluster: Cluster) -> None:
    name = cluster.empty()
    await migrate_database(cluster.url_by_worker(name, 1), shards=SHARDS)
    assert set(cluster.ask(name, _LISTED)) == {(each, "h") for each in DISTRIBUTED}


async def test_nodes_at_different_servers_play_a_table_in_turn_and_hint_each_other(
    cluster: Cluster, database: str
) -> None:
    (table,) = ids(1)
    hinted = asyncio.Event()
    async with (
        await Log.open(cluster.url_by_worker(database, 0)) as one,
        await Log.open(cluster.url_by_worker(database, 1)) as other,
    ):
        for version in range(0, 6, 2):
            await write(one, [table], version)
            await write(other, [table], version + 1)
        assert [row.version for row in await one.read(table)] == [*range(1, 7)]
        sender = one.reader.notifier(lambda tables: None)
        listener = other.reader.notifier(lambda tables: hinted.set() if table in tables else None)
        assert sender is not None
        assert listener is not None
        sender.start()
        listener.start()
        async with asyncio.timeout(20):
            while not hinted.is_set():
                sender.notify([table])
                await asyncio.sleep(0.05)
        await sender.close()
        await listener.close()


@pytest.mark.parametrize("opener", [Log.open, open_readonly])
async def test_a_worker_without_its_coordinator_is_no_database(
    cluster: Cluster, opener: Callable[[str], Awaitable[ReadOnlyLog]]
) -> None:
    name = cluster.empty()
    await migrate_database(cluster.url(name), shards=SHARDS)
    worker = cluster.workers[0]
    OwnServer.stop(cluster)
    try:
        says = f"is a worker's, and the coordinator of its cluster, {cluster.folder}:5432, cannot"
        with pytest.raises(DatabaseUnavailable, match=says):
            await opener(worker.url(name))
    finally:
        OwnServer.start(cluster)
    execute(worker.url(name), "DELETE FROM pg_dist_node WHERE groupid = 0")
    with pytest.raises(DatabaseError, match="or a worker's; name another, or the coordinator"):
        await opener(worker.url(name))


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DROP EXTENSION citus CASCADE", "says nothing"),
        ("UPDATE pg_extension SET extversion = '12.1-1' WHERE extname = 'citus'", "says 12.1-1"),
    ],
)
async def test_a_worker_without_the_extension_or_with_an_older_one_is_named_at_start(
    cluster: Cluster, sql: str, says: str
) -> None:
    name = cluster.empty()
    await migrate_database(cluster.url(name), shards=SHARDS)
    worker = cluster.workers[0]
    worker.ask(name, sql)
    with pytest.raises(ConfigurationError, match=rf"worker {worker.folder}:5432 .* it {says} of"):
        await Log.open(cluster.url(name))


async def test_a_node_starts_while_a_worker_is_down(
    cluster: Cluster, database: str, log: Log
) -> None:
    tables = ids()
    await write(log, tables, 0)
    cluster.workers[0].stop()
    try:
        async with await Log.open(cluster.url_by_worker(database, 0)) as other:
            here = [
                t
                for t in tables
                if worker_of(cluster, database, t) != str(cluster.workers[0].folder)
            ]
            await write(other, here, 1)
    finally:
        cluster.workers[0].start()


async def test_an_older_citus_is_named(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "OLDEST", (99, 0))
    with pytest.raises(
        ConfigurationError, match=r"distributed by Citus 13\.2.*install Citus 99\.0"
    ):
        await Log.open(cluster.url(database))


async def test_a_batch_is_a_transaction_of_each_worker_and_prepares_none(
    cluster: Cluster, database: str, log: Log
) -> None:
    tables = ids()
    assert len({worker_of(cluster, database, each) for each in tables}) == 2
    for server in cluster.servers:
        server.ask(database, "ALTER SYSTEM SET log_statement = 'all'")
        server.ask(database, "SELECT pg_reload_conf()")
    places = [server.folder / "log" for server in cluster.servers]
    seen = [place.stat().st_size for place in places]
    async with await Log.open(cluster.url(database)) as other:
        for version in range(4):
            await write(other, tables, version)
        await other.append(append(tables[0], 4, *("{}",) * 60))
    for server in cluster.servers:
        server.ask(database, "ALTER SYSTEM RESET log_statement")
        server.ask(database, "SELECT pg_reload_conf()")
    written = [place.read_text()[size:] for place, size in zip(places, seen, strict=True)]
    assert [("append_events" in text) for text in written] == [True, True, False]
    assert not any("PREPARE TRANSACTION" in text for text in written)


async def test_a_connection_to_a_worker_does_not_grow(
    cluster: Cluster, database: str, log: Log
) -> None:
    """Some releases of Citus keep a plan of each execution, unless it is a custom one."""
    tables, sizes = ids(), []

    def measure(connection: Connection) -> bool:
        sql = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts"
        sizes.append(connection.exec_driver_sql(sql).scalar())
        return False

    for version in range(60):
        if version in (20, 40):
            await log.run_when_idle(measure, by_worker=True)
        await write(log, tables, version)
    await log.run_when_idle(measure, by_worker=True)
    assert len(sizes) == 6
    for before, after in zip(sizes[2:4], sizes[4:], strict=True):
        assert after - before < 1 << 20


@pytest.mark.parametrize(
    ("version", "forgets"),
    [
        ("13.2.0", False), ("13.2.1", True), ("13.2.10", True), ("13.3.0", True), ("13.4.1", True),
        ("13.5.0", False), ("13.20.1", False), ("14.0.0", True), ("14.2.0", True),
        ("14.3.0", False), ("14.10.0", False), ("15.0.0", False),
    ],
)  # fmt: skip
def test_releases_that_forget_their_plans_get_custom_ones(
    cluster: Cluster, database: str, version: str, forgets: bool
) -> None:
    sql = cluster_module._FORGETS_PLANS.replace("citus_version()", f"'Citus {version} on x86_64'")
    assert cluster.ask(database, sql) == [(forgets,)]


async def test_the_tables_of_a_dead_worker_wait_and_the_others_are_written(
    cluster: Cluster, database: str, log: Log
) -> None:
    tables = ids()
    await write(log, tables, 0)
    dead = cluster.workers[0]
    theirs = [each for each in tables if worker_of(cluster, database, each) == str(dead.folder)]
    others = [each for each in tables if each not in theirs]
    dead.stop()
    try:
        waiting = [log.append(append(each, 1)) for each in theirs]
        await write(log, others, 1)
        assert not any(each.done() for each in waiting)
        async with asyncio.timeout(20):
            while not log.writer.unreachable:  # noqa: ASYNC110  another thread
                await asyncio.sleep(0.01)
        (said,) = log.writer.unreachable
        assert str(dead.folder) in said
        assert theirs[0].hex() in said
        with pytest.raises(DatabaseUnavailable):
            await log.read(theirs[0])
        assert [row.version for row in await log.read(others[0])] == [1, 2]
        # What a node reads to load a table names no other worker.
        assert (await log.end(others[0])).newest == 2
        assert await log.round_versions(others[0]) == []
        assert await log.checkpoints(others[0]) == []
        assert await log.find_command(others[0], "x") is None
        assert await log.head(others[0]) == 2
    finally:
        dead.start()
    assert set(map(type, await asyncio.gather(*waiting))) == {Appended}
    assert log.writer.unreachable == []
    for each in tables:
        assert [row.version for row in await log.read(each)] == [1, 2]


async def test_tables_that_are_known_are_written_while_the_coordinator_is_down(
    cluster: Cluster, database: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "REFRESH_SECONDS", 0.0)  # each batch asks it for the shards
    tables = ids()
    await write(log, tables, 0)
    OwnServer.stop(cluster)
    try:
        for version in (1, 2):
            await write(log, tables, version)
        with pytest.raises(DatabaseUnavailable):
            await log.read(tables[0])
    finally:
        OwnServer.start(cluster)
    for each in tables:
        assert [row.version for row in await log.read(each)] == [1, 2, 3]


async def test_a_job_waits_at_a_worker_no_longer_than_its_transaction_says(
    cluster: Cluster, database: str, log: Log
) -> None:
    (table,) = ids(1)
    await write(log, [table], 0)

    def move(connection: Connection) -> bool:
        connection.exec_driver_sql("UPDATE stream SET projected = 1 WHERE id = ?", (table,))
        return False

    holder = await asyncpg.connect(cluster.url(database))
    try:
        await holder.execute("BEGIN")
        await holder.fetch("SELECT * FROM stream WHERE id = $1 FOR UPDATE", table)
        with pytest.raises(DatabaseLocked):
            async with asyncio.timeout(20):
                await log.run_when_idle(move)
    finally:
        await holder.close()
    await log.run_when_idle(move)


async def test_a_shard_that_is_moved_is_found(cluster: Cluster, database: str, log: Log) -> None:
    table = ids(1)[0]
    await write(log, [table], 0)
    before = worker_of(cluster, database, table)
    after = next(str(each.folder) for each in cluster.workers if str(each.folder) != before)
    moving = asyncio.to_thread(
        cluster.ask,
        database,
        "SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('stream',"
        " $1::bytea), $2, 5432, $3, 5432, 'block_writes')",
        table,
        before,
        after,
    )
    moved = asyncio.create_task(moving)
    version = 1
    while not moved.done():
        await write(log, [table], version)
        version += 1
    await moved
    async with asyncio.timeout(20):
        while str(log.writer._store._shards.known(table).host) != after:  # type: ignore[attr-defined]
            await write(log, [table], version)
            version += 1
    assert [row.version for row in await log.read(table)] == [*range(1, version + 1)]


async def test_a_rebuild_leaves_the_read_models_distributed(
    cluster: Cluster, database: str, log: Log
) -> None:
    await log.run_when_idle(Projector().slice)
    rebuild = Rebuild()
    await log.run_when_idle(rebuild.slice)
    assert rebuild.different == 0
    assert set(cluster.ask(database, _LISTED)) == {(name, "h") for name in DISTRIBUTED}


def test_a_statement_that_is_refused_does_not_say_that_a_log_is_damaged(tmp_path: Path) -> None:
    class Refused(Exception):
        sqlstate = "0A000"

    for code, damaged in (("0A000", False), ("XX000", False), ("XX001", True), ("XX002", True)):
        Refused.sqlstate = code
        found = translate(Refused(), name="postgresql://db/dealer")
        assert isinstance(found, DatabaseDamaged) is damaged
        assert ("restore" in str(found)) is damaged
