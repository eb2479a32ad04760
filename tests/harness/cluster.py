"""A Citus cluster for the tests: a coordinator and two workers, each a server of its own.

Citus is licensed under the AGPL and is no part of the project: `tests/harness/citus.sh` builds it
from its source, and tests without it are skipped, in CI as well. With `DEALER_TEST_POSTGRES=citus`
every test of PostgreSQL runs on such a cluster.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.postgres import OwnServer, Postgres, execute, in_a_thread, programs

CITUS = "citus"

SHARDS = 4

_SETTINGS = (
    "shared_preload_libraries=citus",
    "max_prepared_transactions=100",
    "wal_level=logical",
    "citus.stat_statements_track=none",
    "citus.recover_2pc_interval=1s",
    "citus.enable_unsafe_triggers=on",  # tests switch triggers off, to damage a log
)


def _settings(folder: Path) -> tuple[str, ...]:
    """Settings of a server with its socket in this folder, where it finds itself, too."""
    return (*_SETTINGS, f"citus.local_hostname={folder}")


def installed() -> bool:
    """Whether the installed PostgreSQL has the extension; no server needs to run for it."""
    folder = Path(programs()).parent
    return any(folder.glob("share/**/extension/citus.control")) or any(
        Path("/usr/share/postgresql").glob(f"{folder.name}/extension/citus.control")
    )


def skip_on_cluster(server: Postgres, why: str) -> None:
    """Skip the test that calls this if its server is a cluster."""
    if isinstance(server, Cluster):
        pytest.skip(f"on one server only: {why}")


def require_citus() -> None:
    """Skip the test that calls this where Citus is not installed, in CI as well."""
    if not installed():
        pytest.skip("Citus is not installed (tests/harness/citus.sh builds it)")


# What a test may have changed of a database, besides the rows.
_MADE = """
SELECT string_agg(made, ' ' ORDER BY made) FROM (
    SELECT concat_ws('/', c.relname, c.relkind, c.reltuples > 1e9, c.relacl) AS made FROM pg_class c
    WHERE c.relnamespace = CAST('public' AS regnamespace)
    UNION ALL SELECT concat_ws('/', tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT md5(prosrc) FROM pg_proc WHERE pronamespace = CAST('public' AS regnamespace)
    UNION ALL SELECT concat_ws('/', logicalrelid, partmethod) FROM pg_dist_partition
    UNION ALL SELECT version_num FROM alembic_version
    UNION ALL SELECT array_to_string(setconfig, ' ') FROM pg_db_role_setting
) AS all_of_it"""
_EMPTY_SHARDS = """
SET session_replication_role = replica; SET citus.enable_manual_changes_to_shards = on;
DO $$ BEGIN EXECUTE (
    SELECT 'TRUNCATE ' || string_agg(shard_name(s.logicalrelid, s.shardid), ', ')
    FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
    JOIN pg_dist_local_group l ON l.groupid = p.groupid); END $$"""
_EMPTY_REST = """
SET session_replication_role = replica;
DO $$ BEGIN EXECUTE (
    SELECT 'TRUNCATE ' || string_agg(CAST(c.oid AS text), ', ') FROM (
        SELECT CAST(oid AS regclass) AS oid FROM pg_class c
        WHERE relnamespace = CAST('public' AS regnamespace) AND relkind = 'r'
            AND relname <> 'alembic_version'
            AND NOT EXISTS (SELECT 1 FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)) c);
END $$;
INSERT INTO feed_state (id, seq, event, event_stream, event_version, at)
VALUES (1, 0, 0, 0, 0, 0)"""
_DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Cluster(OwnServer):
    """A coordinator with its `workers`; `database` distributes its databases in `SHARDS` shards.

    The servers find each other by the folders of their sockets. To distribute a database takes
    seconds: one of which a test has changed nothing but rows is emptied and used again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        safe: bool = False,
        settings: tuple[str, ...] = (),
    ) -> None:
        super().__init__(folder, programs(), safe=safe, settings=settings + _settings(folder))
        self.workers: list[OwnServer] = []
        self._free: list[str] = []
        self._made: str | None = None
        for number in range(workers):
            place = folder.with_name(f"{folder.name}-{number + 1}")
            place.mkdir(mode=0o755)
            each = settings + _settings(place)
            self.workers.append(OwnServer(place, programs(), safe=safe, settings=each))

    @property
    def servers(self) -> list[OwnServer]:
        """The workers, and the coordinator at the end."""
        return [*self.workers, self]

    def make(self) -> None:
        for worker in self.workers:
            worker.make()
        super().make()

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        super().start()

    def stop(self, how: str = "immediate") -> None:
        super().stop(how)
        for worker in self.workers:
            worker.stop(how)

    def url_of(self, database: str, *servers: OwnServer) -> str:
        """An address that names these servers, in their order."""
        hosts = ",".join(str(each.folder) for each in servers)
        return f"postgresql://dealer@/{database}?host={hosts}"

    def url_by_worker(self, database: str, number: int) -> str:
        """An address that names all servers, and first a worker, which depends on the number."""
        turn = number % len(self.workers)
        return self.url_of(database, *self.workers[turn:], self, *self.workers[:turn])

    def empty(self) -> str:
        name = super().empty()
        for worker in self.workers:
            worker.ask("postgres", f"CREATE DATABASE {name} TEMPLATE template0")
        for server in self.servers:
            server.ask(name, "CREATE EXTENSION citus")
        self.ask(name, "SELECT citus_set_coordinator_host($1, 5432)", str(self.folder))
        for worker in self.workers:
            self.ask(name, "SELECT citus_add_node($1, 5432)", str(worker.folder))
        return name

    def database(self) -> str:
        from dealer.eventlog.backends import migrate_database

        if self._free:
            return self._free.pop()
        name = self.empty()
        in_a_thread(lambda: migrate_database(self.url(name), shards=SHARDS))
        self._made = self._made or str(self.ask(name, _MADE))
        return name

    def copy(self, source: str, to: str) -> None:
        for server in self.servers:
            OwnServer.copy(server, source, to)

    def drop(self, database: str) -> None:
        has_schema = self.ask(database, "SELECT 1 WHERE to_regclass('alembic_version') > 0")
        if has_schema and str(self.ask(database, _MADE)) == self._made:
            self.ask(database, _DISCONNECT)
            for worker in self.workers:
                execute(worker.url(database), _EMPTY_SHARDS)
            execute(self.url(database), _EMPTY_REST)
            self._free.append(database)
            return
        super().drop(database)
        for worker in self.workers:
            worker.drop(database)


@contextmanager
def standby_of(server: OwnServer) -> Iterator[OwnServer]:
    """A standby of a server of a cluster, in a folder beside it."""
    folder = server.folder.with_name(f"{server.folder.name}-standby")
    folder.mkdir(mode=0o755)
    standby = OwnServer(folder, programs(), safe=True, settings=_settings(folder))
    standby.make_standby_of(server)
    try:
        standby.start()
        yield standby
    finally:
        standby.stop()


@contextmanager
def own_cluster(
    *, workers: int = 2, safe: bool = False, settings: tuple[str, ...] = ()
) -> Iterator[Cluster]:
    """A cluster for the duration of the block; a `safe` one survives a crash.

    `settings` are more of each server's, as `name=value`.
    """
    require_citus()
    with tempfile.TemporaryDirectory(prefix="dealer-citus-") as parent:
        Path(parent).chmod(0o755)
        folder = Path(parent) / "c"
        folder.mkdir(mode=0o755)
        cluster = Cluster(folder, workers=workers, safe=safe, settings=settings)
        try:
            cluster.make()
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
