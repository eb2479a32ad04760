"""A PostgreSQL server for the tests: one per session, one database per test."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from tests.harness.installed import missing, program
from tests.harness.ports import unused_port

VARIABLE = "DEALER_TEST_POSTGRES"
"""URL of a server to use instead, as a user that may create databases: postgresql://user@host/any.

Or `citus`: every test runs on a cluster of a coordinator and two workers (`tests.harness.cluster`).
"""

_UNSAFE = ("-c", "fsync=off", "-c", "full_page_writes=off")


class Postgres:
    """A server at `base`, a URL without database; `database` creates databases."""

    def __init__(self, base: str, query: str = "") -> None:
        self._base = base
        self._query = query
        self._names = count()
        self._template: str | None = None

    def url(self, database: str) -> str:
        return f"{self._base}/{database}{self._query}"

    def ask(self, database: str, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement, on a connection and an event loop of their own."""
        return query(self.url(database), sql, *parameters)

    def empty(self) -> str:
        """The name of a new database without a schema."""
        return self._make("template0")

    def database(self) -> str:
        """The name of a new database with the newest schema."""
        if self._template is None:
            name = self.empty()
            migrated(self.url(name))
            self._template = name
        return self._make(self._template)

    def drop(self, database: str) -> None:
        self.ask("postgres", f"DROP DATABASE {database} WITH (FORCE)")

    def copy(self, source: str, to: str) -> None:
        """Make a database a copy of another one, whatever it was before."""
        self.ask("postgres", f"DROP DATABASE IF EXISTS {to} WITH (FORCE)")
        # A template must have no connections, and those of a closed service end a little later.
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        for _ in range(50):
            self.ask("postgres", end, source)
            with suppress(Exception):
                self.ask("postgres", f"CREATE DATABASE {to} TEMPLATE {source}")
                return
        raise AssertionError(f"the database {source} could not be copied")

    def _make(self, template: str) -> str:
        name = f"dealer_test_{os.getpid()}_{next(self._names)}"
        self.ask("postgres", f"CREATE DATABASE {name} TEMPLATE {template}")
        return name


class OwnServer(Postgres):
    """A server in a temporary folder; `start` and `stop` control its process."""

    def __init__(
        self,
        folder: Path,
        programs: Path,
        *,
        safe: bool = False,
        port: int | None = None,
        settings: Iterable[str] = (),
    ) -> None:
        if port is None:
            super().__init__("postgresql://dealer@", f"?host={quote(str(folder))}")
        else:
            super().__init__(f"postgresql://dealer@127.0.0.1:{port}")
        self.folder = folder
        self.port = port
        self._programs = programs
        self._options = [] if safe else [*_UNSAFE]
        for setting in settings:
            self._options += ["-c", setting]
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to run as root.
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    def make(self) -> None:
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", "dealer", "-A", "trust", "-E", "UTF8",
            "--locale=C", "--no-sync", "--no-instructions",
        )  # fmt: skip

    def make_standby_of(self, primary: OwnServer) -> None:
        """Copy a running server, whose changes this one then follows."""
        place = str(primary.folder) if primary.port is None else "127.0.0.1"
        self._run(
            "pg_basebackup", "-D", str(self.folder / "data"), "-R", "-c", "fast", "--no-sync",
            "-h", place, "-p", str(primary.port or 5432), "-U", "dealer",
        )  # fmt: skip

    def back_up(self, to: Path) -> None:
        """Write a base backup of the running server to a new folder."""
        self._run(
            "pg_basebackup", "-D", str(to), "-c", "fast", "--no-sync", "-U", "dealer",
            "-h", str(self.folder),
        )  # fmt: skip

    def promote(self) -> None:
        """Let a standby accept writes."""
        self.ask("postgres", "SELECT pg_promote()")

    def start(self) -> None:
        program = [
            str(self._programs / "postgres"), "-D", str(self.folder / "data"),
            "-k", str(self.folder), "-c", f"listen_addresses={'127.0.0.1' if self.port else ''}",
            "-c", f"port={self.port or 5432}", "-c", "max_connections=200",
            "-c", "shared_buffers=64MB", *self._options,
        ]  # fmt: skip
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(program, stdout=log, stderr=log, **self.user_of_process())
        log.close()
        until = time.monotonic() + 60
        standby = (self.folder / "data" / "standby.signal").exists()
        while True:
            try:
                # It accepts connections before the end of a recovery, and is read-only until then.
                if self.ask("postgres", "SELECT pg_is_in_recovery()") == [(standby,)]:
                    return
            except Exception:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and not stopped."""
        return self._process is not None

    def stop(self, how: str = "immediate") -> None:
        """`immediate` is like SIGKILL: the server recovers from its log at the next start."""
        if self._process is not None:
            self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "stop")
            self._process.wait()
            self._process = None

    def has_ended(self) -> bool:
        """Whether the server has ended without being stopped, as without room for its log."""
        if self._process is None or self._process.poll() is None:
            return False
        self._process = None
        return True

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **self.user_of_process(),
        )

    def user_of_process(self) -> dict[str, Any]:
        """Arguments of `subprocess` for programs that refuse to run as root."""
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


@contextmanager
def own_server(
    *,
    safe: bool = False,
    port: int | None = None,
    settings: Iterable[str] = (),
    standby_of: OwnServer | None = None,
    within: Path | None = None,
) -> Iterator[OwnServer]:
    """A server for the duration of the block; a `safe` one survives a crash.

    `settings` are more of the server's, as `name=value`; its files are `within` another folder.
    """
    if on_cluster() and port is None and not settings:
        from tests.harness.cluster import own_cluster

        with own_cluster(safe=safe) as cluster:
            yield cluster
        return
    folder = Path(tempfile.mkdtemp(prefix="dealer-pg-", dir=within))
    folder.chmod(0o755)
    server = OwnServer(folder, programs(), safe=safe, port=port, settings=settings)
    try:
        if standby_of is None:
            server.make()
        else:
            server.make_standby_of(standby_of)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@contextmanager
def pooler(server: OwnServer, *, mode: str) -> Iterator[str]:
    """PgBouncer before a server, in this pool_mode; the URL of a database without its name."""
    name, port = program("pgbouncer"), unused_port()
    with tempfile.TemporaryDirectory(prefix="dealer-pool-") as folder:
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={server.folder} port={server.port or 5432} user=dealer\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\n"
        )
        os.chmod(folder, 0o755)
        user = server.user_of_process()
        process = subprocess.Popen([name, "--quiet", str(settings)], **user)
        try:
            wait_for_port(port)
            yield f"postgresql://dealer@127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait()


def on_cluster() -> bool:
    """Whether every server of the tests is a cluster."""
    return os.environ.get(VARIABLE) == "citus"


def wait_for_port(port: int) -> None:
    """Return once something listens on a port of 127.0.0.1; AssertionError after a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on {port}")


@contextmanager
def any_server() -> Iterator[Postgres]:
    """The server that the environment names, otherwise a temporary one."""
    given = os.environ.get(VARIABLE)
    if not given or on_cluster():
        with own_server() as server:
            yield server
        return
    parts = urlsplit(given)
    base = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    yield Postgres(base, f"?{parts.query}" if parts.query else "")


def programs() -> Path:
    """The folder with initdb and postgres: from PATH, Debian's newest, or a wheel's."""
    found = shutil.which("initdb")
    if found and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    places = sorted(glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda each: (len(each), each))
    places += glob(
        f"{sys.prefix}/lib/python*/site-packages/*postgres*/**/bin/initdb", recursive=True
    )
    if not places:
        missing(f"PostgreSQL is not installed (Debian: postgresql), and {VARIABLE} names none")
    return Path(places[-1]).parent


def query(url: str, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Rows of a statement, on a connection and an event loop of their own."""

    async def ask() -> list[tuple[Any, ...]]:
        import asyncpg

        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql, *parameters)]
        finally:
            await connection.close()

    return in_a_thread(ask)


def execute(url: str, sql: str) -> None:
    """Run statements without parameters, on a connection and an event loop of their own."""

    async def run() -> None:
        import asyncpg

        connection = await asyncpg.connect(url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    in_a_thread(run)


def migrated(url: str) -> None:
    """Migrate the database at `url` to the newest schema."""
    from dealer.eventlog.backends import migrate_database

    in_a_thread(lambda: migrate_database(url))


def in_a_thread(work: Any) -> Any:
    """The result of a coroutine function, run on an event loop in another thread."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((asyncio.run(work()), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = Thread(target=run)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


class Blocking:
    """A connection with the interface of SQLAlchemy's synchronous one, for tests without a loop.

    `numbers` counts the tables whose first events were written on it or on connections that share
    the dictionary.
    """

    def __init__(self, url: str, numbers: dict[bytes, int]) -> None:
        from dealer.eventlog.postgres.database import PostgresDatabase

        self.url = url
        self.numbers = numbers
        self._loop = asyncio.new_event_loop()
        self._engine = PostgresDatabase(url).engine({"lock_timeout": "20s"})
        self._connection = self._loop.run_until_complete(self._engine.connect().start())
        self.dialect = self._engine.dialect

    def exec_driver_sql(self, sql: str, parameters: Any = None) -> Any:
        if sql == "BEGIN IMMEDIATE":
            sql = "BEGIN"
        return self.run(lambda connection: connection.exec_driver_sql(sql, parameters))

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(self._connection.run_sync(work))

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.run_until_complete(self._engine.dispose())
        self._loop.close()
