"""A log over several PostgreSQL servers, by Citus: where its tables are, and how it is distributed.

Only this module knows that a log is distributed. The SQL tables with a column `stream`, and
`stream` itself, are distributed by it; a game table's rows are all at one worker. All other SQL
tables are the coordinator's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from dealer.errors import ConfigurationError
from dealer.eventlog.protocols import Connection
from dealer.eventlog.schema import NEAR

if TYPE_CHECKING:
    import asyncpg

OLDEST = (13, 2)
"""The oldest Citus on which the log was tried."""

_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
# The read models that a rebuild prepares are among them.
_KEYED = """
SELECT CAST(c.relname AS text), p.partmethod IS NOT NULL
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = CAST(current_schema() AS regnamespace)
    AND (a.attname = 'stream' OR (c.relname = 'stream' AND a.attname = 'id'))
    AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)
    AND NOT relation_is_a_known_shard(c.oid)
ORDER BY c.relname <> 'stream', c.relname"""
_FORGETS_PLANS = r"SELECT citus_version() ~ '^Citus (13\.2\.[1-9]|13\.[34]\.|14\.[0-2]\.)'"
_DDL = (
    # The triggers read the rows of their own game table, which are in the same shard.
    "SET LOCAL citus.enable_unsafe_triggers TO on",
    # By one connection to each worker, which sees what the transaction has changed before.
    "SET LOCAL citus.multi_shard_modify_mode TO sequential",
)
_DISTRIBUTE = "SELECT create_distributed_table('stream', 'id', shard_count => CAST(? AS integer))"
_BESIDE = "SELECT create_distributed_table(?, 'stream', colocate_with => 'stream')"
_SHARDS = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = CAST('stream' AS regclass)"
_WORKERS = """
SELECT nodename, nodeport, success, result FROM run_command_on_workers(
    $$SELECT extversion FROM pg_extension WHERE extname = 'citus'$$) ORDER BY nodename, nodeport"""
_COORDINATOR = """
SELECT nodename, nodeport FROM pg_dist_node JOIN pg_dist_local_group l ON l.groupid <> 0
WHERE pg_dist_node.groupid = 0 AND noderole = 'primary'"""
_PLACEMENTS = """
SELECT s.shardid, n.nodename, n.nodeport
FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE s.logicalrelid = CAST('stream' AS regclass)"""
_SHARD_OF = """
SELECT id, get_shard_id_for_distribution_column('stream', id)
FROM unnest(CAST(? AS bytea[])) AS id"""
# The shards of these SQL tables at the server of this connection.
_HERE = """
SELECT CAST(s.logicalrelid AS text), CAST(shard_name(s.logicalrelid, s.shardid) AS text)
FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_local_group l ON l.groupid = p.groupid
WHERE s.logicalrelid IN (CAST('stream' AS regclass), CAST('archived' AS regclass))"""

REFRESH_SECONDS = 1.0
"""How long a shard may have been moved before that is noticed: until then its new worker is reached
through the old one, in a distributed transaction."""

SHOWN = 10
"""The most tables of a worker that are named."""

_BOUND = 100_000


class Server(NamedTuple):
    """A server of a cluster, as the others know it; `host` may be a socket's folder."""

    host: str
    port: int


class Near:
    """What of the log is at one worker: for `dealer.eventlog.schema`, on connections to it."""

    def __init__(self, shards: Shards, worker: Server, parts: dict[str, list[str]]) -> None:
        self._shards = shards
        self.worker = worker
        self._parts = parts

    def tables(self, connection: Connection, tables: Collection[bytes]) -> set[bytes]:
        """Those of these game tables that are here."""
        if self._shards.is_due(tables):
            self._shards.find(connection, tables)
        return {table for table in tables if self._shards.known(table) == self.worker}

    def part(self, name: str) -> str:
        """A FROM item with the rows of an SQL table that are here, under its name."""
        each = [f"SELECT * FROM {shard}" for shard in self._parts.get(name, ())]
        return f"({' UNION ALL '.join(each) or f'SELECT * FROM {name} LIMIT 0'}) AS {name}"


class Shards:
    """The worker of each game table: asked once for it, and for all shards each REFRESH_SECONDS."""

    def __init__(self) -> None:
        self.workers: list[Server] = []
        self._worker_of: dict[int, Server] = {}
        self._shard_of: dict[bytes, int] = {}
        self._refresh_at = 0.0

    def known(self, table: bytes) -> Server | None:
        """The worker of a table, if it was found."""
        return self._worker_of.get(self._shard_of.get(table, 0))

    def is_due(self, tables: Collection[bytes]) -> bool:
        """Whether `find` has to be called."""
        return monotonic() >= self._refresh_at or not self._shard_of.keys() >= set(tables)

    def find(self, connection: Connection, tables: Collection[bytes]) -> None:
        """Find the workers of these tables, from any server; raises the driver's errors."""
        execute = connection.exec_driver_sql
        if monotonic() >= self._refresh_at:
            found = execute(_PLACEMENTS).fetchall()
            self._worker_of = {shard: Server(host, port) for shard, host, port in found}
            self.workers = sorted(set(self._worker_of.values()))
            self._refresh_at = monotonic() + REFRESH_SECONDS
        unknown = [table for table in tables if table not in self._shard_of]
        if unknown:
            if len(self._shard_of) > _BOUND:
                self._shard_of.clear()
            rows = execute(_SHARD_OF, (unknown,))
            self._shard_of |= {bytes(table): shard for table, shard in rows}

    def describe_down(self, worker: Server) -> str:
        """A sentence about a worker that cannot be reached, with the tables that are known."""
        tables = [table.hex() for table in [*self._shard_of] if self.known(table) == worker]
        more = [f"{len(tables) - SHOWN} more"] if len(tables) > SHOWN else []
        named = ", ".join([*tables[:SHOWN], *more])
        name = f"{worker.host}:{worker.port}"
        return f"the worker {name} is unreachable; unavailable tables: {named or 'none'}"

    def run_at(self, connection: Any, *, worker: Server, work: Callable[[Any], bool]) -> bool:
        """Run `work` on a connection to a worker, which then says what of the log is there.

        Raises the driver's errors, and what `work` raises.
        """
        parts: dict[str, list[str]] = {}
        for name, shard in connection.exec_driver_sql(_HERE):
            parts.setdefault(name, []).append(shard)
        connection.info[NEAR] = Near(self, worker, parts)
        return work(connection)


async def coordinator_of(connection: asyncpg.Connection[Any], seconds: float) -> Server | None:
    """The coordinator, if this connection is to one of its workers, which knows it.

    Raises the driver's errors, and TimeoutError if there is no answer for so many `seconds`.
    """
    if await connection.fetchval(_VERSION, timeout=seconds) is None:
        return None
    found = await connection.fetchrow(_COORDINATOR, timeout=seconds)
    return None if found is None else Server(*found)


def require_whole(connection: Connection, *, name: str) -> bool:
    """Whether the log is distributed; `name` is the database's.

    Raises ConfigurationError if only a part of it is, or if one of its servers cannot be used.
    """
    version = connection.exec_driver_sql(_VERSION).scalar()
    if version is None:
        return False
    found = connection.exec_driver_sql(_KEYED).fetchall()
    missing = [table for table, distributed in found if not distributed]
    if len(missing) == len(found):
        return False
    if tuple(map(int, version.partition("-")[0].split("."))) < OLDEST:
        raise ConfigurationError(
            f"The database {name} is distributed by Citus {version}; install Citus "
            f"{'.'.join(map(str, OLDEST))} or newer on all of its servers, and run ALTER EXTENSION "
            "citus UPDATE on each."
        )
    if missing:
        raise ConfigurationError(
            f"The database {name} is distributed in part: not {', '.join(missing)}. Create "
            "the database again and run `dealer migrate --shards N` on it, or restore a backup."
        )
    require_cluster(connection, name=name, may_be_down=True)
    return True


def require_cluster(connection: Connection, *, name: str, may_be_down: bool = False) -> None:
    """Raise ConfigurationError unless the database has workers, all with the same extension.

    A worker that does not answer is left out if it `may_be_down`.
    """
    version = connection.exec_driver_sql(_VERSION).scalar()
    if version is None:
        raise ConfigurationError(
            f"The database {name} has no extension citus: run CREATE EXTENSION citus in it on the "
            "coordinator and on each worker, add the workers by citus_add_node, and try again; or "
            "leave --shards out."
        )
    workers = connection.exec_driver_sql(_WORKERS).fetchall()
    if not workers:
        raise ConfigurationError(
            f"The Citus cluster of the database {name} has no workers; add each by citus_add_node."
        )
    for host, port, answered, said in workers:
        if said != version and (answered or not may_be_down):
            raise ConfigurationError(
                f"The worker {host}:{port} cannot be used: it says {said or 'nothing'} of its "
                f"extension citus. Check that it runs, and that the database {name} has the "
                f"extension there, in the coordinator's version {version}."
            )


def settings_at_workers(connection: Connection) -> dict[str, str]:
    """Settings of connections to workers: a Citus that loses plans, and keeps them, drops them."""
    forgets = connection.exec_driver_sql(_FORGETS_PLANS).scalar()
    return {"plan_cache_mode": "force_custom_plan"} if forgets else {}


def distribute(connection: Connection, shards: int, *, name: str) -> None:
    """Distribute an empty log in so many shards, in the transaction that created its tables.

    A log that is distributed in as many already is left as it is. Raises ConfigurationError.
    """
    execute = connection.exec_driver_sql
    if require_whole(connection, name=name):
        if (now := execute(_SHARDS).scalar()) != shards:
            raise ConfigurationError(
                f"The database {name} is distributed in {now} shards, not in {shards}. To change "
                "their number, use Citus's alter_distributed_table."
            )
        return
    if execute("SELECT 1 FROM stream LIMIT 1").first() is not None:
        raise ConfigurationError(
            f"The database {name} has tables already: only an empty one is distributed. Make a new "
            "one with --shards."
        )
    for setting in _DDL:
        execute(setting)
    execute(_DISTRIBUTE, (shards,))
    distribute_beside(connection, [table for table, done in execute(_KEYED) if not done])


def begin_ddl(connection: Connection) -> bool:
    """Let a transaction change SQL tables, before anything else; whether the log is in shards."""
    execute = connection.exec_driver_sql
    if execute(_VERSION).scalar() is None or not execute(_SHARDS).scalar():
        return False
    for setting in _DDL:
        execute(setting)
    return True


def distribute_beside(connection: Connection, tables: Collection[str]) -> None:
    """Distribute these SQL tables as `stream` is."""
    for table in tables:
        connection.exec_driver_sql(_BESIDE, (table,))
