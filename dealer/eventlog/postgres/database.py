"""Connections to a PostgreSQL database, with retries while the server is unreachable.

The SQL of this package has `?` for parameters; it is rewritten to `$1`, `$2` … for PostgreSQL.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import Connection, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from dealer import errors
from dealer.backoff import Backoff
from dealer.eventlog.address import is_postgres, not_encoded
from dealer.eventlog.db_errors import is_recovering, reason, translate
from dealer.eventlog.postgres.cluster import Server, coordinator_of

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

CONNECT_SECONDS = 5.0

SILENT_SECONDS = 20
"""A connection over which nothing comes, not even the acknowledgement of a packet, ends after this.

Linux alone would wait a quarter of an hour for a network that drops packets.
"""

_HOSTS = "hosts"
_OPTIONS = frozenset(
    (
        "application_name", "gsslib", "host", "krbsrvname", "options", "passfile", "password",
        "port", "service", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert",
        "sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
        "target_session_attrs", "user",
    )
)  # fmt: skip
"""Options of libpq that the driver has, too, but the database's name, which is in the path."""

PAUSE_SECONDS = 1.0
"""How long a server that others would wait for is not tried again."""

_SESSION = "SELECT pg_backend_pid()"

IDENTITY = """
SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CAST(CAST('house' AS regclass) AS oid),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))
"""
"""The cluster, the database in it, the table that a restore creates again, and the timeline, which
a recovery to a point in time and a failover change."""

BACKOFF = (0.02, 0.4)
"""First and longest delay between attempts to reach the server, in seconds."""

# Set so that the log does not depend on the defaults of the database or the role, and after a
# connection was made, because a connection pooler accepts few settings in its startup message. The
# timeouts release the locks of a client host that has vanished: they block appends to its tables.
# Statements name their rows by keys: index lookups are right whatever the statistics say.
# With Citus's filter of the catalog the driver's questions about types take seconds; and what a
# transaction sets for itself, such as its lock_timeout, has to reach the workers.
_SETTINGS = {
    "citus.override_table_visibility": "off",
    "citus.propagate_set_commands": "local",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "20s",
    "jit": "off",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def end_when_silent(connection: socket.socket) -> None:
    """End a TCP connection when its other end has not been heard of for `SILENT_SECONDS`.

    While a query runs, its server answers the keepalives: only the network's silence counts.
    """
    if connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENT_SECONDS // 2),
        ("TCP_KEEPINTVL", SILENT_SECONDS // 4),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", 1000 * SILENT_SECONDS),
    ):
        if option := getattr(socket, name, None):  # not every system has each of them
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


class PostgresDatabase:
    """One PostgreSQL database; `name` is its address without password and options.

    `url` is a `postgresql://…` address with options of libpq (`host=` for a socket's folder,
    `sslmode`, `passfile`). `retry_seconds` is how long operations are tried again while the server
    is unreachable. `newest` is the identity of the newest server that was seen; if it is empty,
    connections are not compared with it. Raises ConfigurationError if `url` is no such address.
    """

    def __init__(self, url: str, *, retry_seconds: float = 0.0) -> None:
        rest = url.partition("://")[2]
        authority = re.split("[/?#]", rest, maxsplit=1)[0]
        # As in libpq: the hosts of several servers, of which one is used.
        listed = authority.rpartition("@")[2]
        hosts = listed.split(",")
        place, _, query = rest.partition("?")
        if (
            not_encoded(place) is not None
            or "#" in query
            or rest.count("@") != authority.count("@")
            or authority.count("@") > 1
        ):
            raise errors.ConfigurationError(
                "The database's address is invalid; write @ / # ? % in a name or password as "
                "%40 %2F %23 %3F %25, or use DEALER_DATABASE_PASSWORD_FILE."
            )
        try:
            urlsplit(url)  # as the driver does it
            each = [
                make_url(url.replace(authority, authority.replace(listed, host), 1))
                for host in hosts
            ]
            parsed = each[-1]
        except (ArgumentError, ValueError):
            parsed = None
        if parsed is None or not is_postgres(url) or not parsed.database:
            raise errors.ConfigurationError(
                "The database's address is invalid; write it like "
                "postgresql://user:password@host:5432/dealer."
            )
        name = URL.create("postgresql", username=parsed.username, database=parsed.database)
        self.name = name.set(host=_HOSTS).render_as_string().replace(_HOSTS, listed)
        self._options = self._checked_options(query, parsed)
        ports = [str(one.port) for one in each if one.port is not None]
        for port in [*ports, *filter(None, self._options.get("port", "").split(","))]:
            if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 2**16):
                raise errors.ConfigurationError(
                    f"The address of the database {self.name} has the port {port}; a port is a "
                    "number from 1 to 65535."
                )
        login, path = authority.removesuffix(listed), place.removeprefix(authority)
        # The address once for each of its hosts, which is the first there.
        self._dsns: list[str] = []
        for at in range(max(len(hosts), self._options.get("host", "").count(",") + 1)):
            turned = {key: _from(at, self._options.get(key, "")) for key in ("host", "port")}
            options = "&".join(f"{key}={turned.get(key, it)}" for key, it in self._options.items())
            self._dsns.append(f"postgresql://{login}{_from(at, listed)}{path}?{options}")
        self.retry_seconds = retry_seconds
        self.newest = ""

    def _checked_options(self, query: str, parsed: URL) -> dict[str, str]:
        """The options in the address; raises ConfigurationError."""
        pairs = [pair.partition("=") for pair in query.split("&") if query]
        options = {name: value for name, _, value in pairs}
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            raise errors.ConfigurationError(
                f"The address of the database {self.name} has an unknown option: "
                f"{', '.join(unknown)}. There are {', '.join(sorted(_OPTIONS))}; a setting of the "
                "server is written options=-c%20NAME=VALUE, and a ? in a name %3F."
            )
        empty = [name for name, value in options.items() if not value]
        if empty:
            raise errors.ConfigurationError(
                f"The address of the database {self.name} is invalid: {', '.join(empty)} has no "
                "value."
            )
        before = {
            "host": parsed.host,
            "password": parsed.password,
            "port": parsed.port,
            "user": parsed.username,
        }
        twice = [name for name, value in before.items() if value and name in options]
        if twice:
            # libpq, and so pg_dump, would take the other one.
            raise errors.ConfigurationError(
                f"The address of the database {self.name} has two values for "
                f"{' and '.join(twice)}; leave one out."
            )
        return options

    async def connect(self, **settings: str) -> asyncpg.Connection[Any]:
        """A new connection of the driver, as `connect_to` without a server makes it."""
        return await self.connect_to(None, settings)

    async def connect_to(
        self, server: Server | None, settings: dict[str, str]
    ) -> asyncpg.Connection[Any]:
        """A new connection of the driver, to a worker or to the address; raises its errors.

        Where the address leads to a worker, the connection is to the coordinator that this names.
        Raises DatabaseError if an option of the address has an invalid value, and ServerReplaced if
        a standby took over from this server.
        """
        import asyncpg

        try:
            connection = await (self._open(self._dsns[0], server) if server else self._reach())
            try:
                if server is None and (found := await coordinator_of(connection, CONNECT_SECONDS)):
                    connection.terminate()
                    connection = await self._reach_coordinator(found)
                end_when_silent(connection._transport.get_extra_info("socket"))
                await connection.execute(
                    "".join(f"SET {name} = '{at}';" for name, at in (_SETTINGS | settings).items()),
                    timeout=CONNECT_SECONDS,
                )
                if self.newest and server is None:
                    found = await connection.fetchval(IDENTITY, timeout=CONNECT_SECONDS)
                    self.require_newest(found, self.newest)
                    self.newest = found
            except BaseException:
                connection.terminate()
                raise
            return connection
        except (asyncpg.PostgresError, asyncpg.ClientConfigurationError) as error:
            said = re.findall(r"[\"`](\w+)[\"`]", str(error))
            invalid = [
                name
                for name, value in self._options.items()
                if name in said or (name == "options" and any(each in value for each in said))
            ]
            if not invalid:
                raise
            raise errors.DatabaseError(
                f"The address of the database {self.name} has an invalid value for an option: "
                f"{', '.join(invalid)}."
            ) from None

    async def _reach(self) -> asyncpg.Connection[Any]:
        """A connection to the address; as in libpq, each host has CONNECT_SECONDS to answer."""
        for dsn in self._dsns[:-1]:
            with suppress(TimeoutError):
                return await self._open(dsn)
        return await self._open(self._dsns[-1])

    async def _reach_coordinator(self, coordinator: Server) -> asyncpg.Connection[Any]:
        try:
            return await self._open(self._dsns[0], coordinator)
        except OSError as error:
            raise errors.DatabaseUnavailable(
                f"The database {self.name} is a worker's, and the coordinator of its cluster, "
                f"{coordinator.host}:{coordinator.port}, cannot be reached: {reason(error)}."
            ) from error

    async def _open(self, dsn: str, server: Server | None = None) -> asyncpg.Connection[Any]:
        import asyncpg

        named = "application_name" in self._options
        place = {} if server is None else {"host": server.host, "port": server.port}
        return await asyncpg.connect(
            dsn,
            **place,
            timeout=CONNECT_SECONDS,
            server_settings={} if named else {"application_name": "dealer"},
        )

    def require_newest(self, found: str, known: str) -> None:
        """Raise ServerReplaced if the server `found` has an earlier timeline than the `known` one.

        A standby that is promoted begins a new timeline of the same cluster, as a recovery to a
        point in time does: the server with the old one was replaced.
        """
        timeline, newest = found.rpartition("/")[2], known.rpartition("/")[2]
        if found.partition("/")[0] == known.partition("/")[0] and timeline < newest:
            raise errors.ServerReplaced(
                f"The PostgreSQL server at {self.name} was replaced: it is on timeline "
                f"{int(timeline, 16)}, and this node has used timeline {int(newest, 16)} of the "
                "same cluster, whose events it lacks. Stop this server, and let --database name "
                "the one that took over; see Fencing in MANY_NODES.md."
            )

    async def require_sessions(self) -> None:
        """Raise ConfigurationError if a pooler gives each transaction a session of its own.

        Settings, locks, prepared statements and notifications belong to a session. Raises the
        driver's errors, too.
        """
        first = await self.connect()
        try:
            session = await first.fetchval(_SESSION)
            if session == first.get_server_pid():
                return  # no pooler
            second = await self.connect()
            try:
                # A session that is free, although the first connection is open, is used again.
                shared = await second.fetchval(_SESSION) == session
            finally:
                await second.close()
        finally:
            await first.close()
        if shared:
            raise errors.ConfigurationError(
                f"The connection pooler of {self.name} gives each transaction or statement another "
                "session; set its pool_mode to session for this database."
            )

    def engine(
        self, settings: dict[str, str], *, server: Server | None = None, **options: Any
    ) -> AsyncEngine:
        """An SQLAlchemy engine in autocommit mode, with these settings of the server."""

        async def connect(*_: Any, **__: Any) -> Any:
            return await self.connect_to(server, settings)

        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            **options,
        )
        event.listen(engine.sync_engine, "before_cursor_execute", _rewrite, retval=True)
        return engine

    async def run(self, work: Callable[[Connection], None]) -> None:
        """Run `work` in a transaction on a connection of its own; raises the driver's errors."""
        engine = self.engine({})
        try:
            async with engine.connect() as connection:
                await connection.exec_driver_sql("BEGIN")
                await connection.run_sync(work)
                await connection.exec_driver_sql("COMMIT")
        finally:
            await engine.dispose()

    async def with_retry(
        self, work: Callable[[], Awaitable[T]], *, seconds: float, recovery: float = 0.0
    ) -> T:
        """The result of `work`, tried again for `seconds` while the server is unreachable.

        While it recovers, `work` is tried again for `recovery` seconds. Then raises
        DatabaseUnavailable; any other DatabaseError is raised at once.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        backoff = Backoff(first=BACKOFF[0], longest=BACKOFF[1])
        while True:
            try:
                return await work()
            except (errors.ConfigurationError, errors.Overloaded):
                raise
            except Exception as error:
                translated = translate(error, name=self.name)
                limit = max(seconds, recovery) if is_recovering(error) else seconds
                waited = loop.time() - began
                # A worker may be down for long, and others would wait for the retries.
                again = isinstance(translated, errors.DatabaseUnavailable)
                if not again or isinstance(translated, errors.WorkerUnavailable) or waited >= limit:
                    raise translated from error
            await asyncio.sleep(backoff.next_jittered())


def _from(at: int, listed: str) -> str:
    """A list with commas that begins with the item `at`, and has those before it at its end."""
    each = listed.split(",")
    return ",".join([*each[at:], *each[:at]])


def _rewrite(
    connection: object, cursor: object, statement: str, parameters: Any, *_: object
) -> tuple[str, Any]:
    return to_dollar_params(statement), parameters


@lru_cache(maxsize=1024)
def to_dollar_params(statement: str) -> str:
    """The statement with `$1`, `$2` … in place of each `?`."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)


class Session:
    """A connection with these `settings`, to the database's address or to a worker of its cluster.

    `error` is why the server could not be reached at the last attempt.
    """

    def __init__(
        self, database: PostgresDatabase, settings: dict[str, str], worker: Server | None = None
    ) -> None:
        self.worker = worker
        self.error: errors.DatabaseError | None = None
        self._database = database
        self._engine = database.engine(settings, server=worker, poolclass=NullPool)
        self._connection: AsyncConnection | None = None
        self._raw: asyncpg.Connection[Any] | None = None
        self._not_before = 0.0

    async def connect(self) -> tuple[AsyncConnection, asyncpg.Connection[Any]]:
        """The connection, also as the driver's; raises the driver's errors."""
        if self._connection is not None and self._raw is not None:
            if not self._raw.is_closed():
                return self._connection, self._raw
            await self.disconnect()
        connection = await self._engine.connect()
        self._connection = connection
        self._raw = (await connection.get_raw_connection()).driver_connection
        assert self._raw is not None
        return connection, self._raw

    async def connect_with_retry(
        self, *, once: bool = False
    ) -> tuple[AsyncConnection, asyncpg.Connection[Any]]:
        """The same, tried again for the database's `retry_seconds`; raises DatabaseError.

        A server that was unreachable is tried once. With `once` any is, and then not for some time.
        """
        if once and self.error is not None and monotonic() < self._not_before:
            raise self.error
        seconds = 0.0 if once or self.error is not None else self._database.retry_seconds
        try:
            connections = await self._database.with_retry(self.connect, seconds=seconds)
        except errors.DatabaseUnavailable as error:
            self.error, self._not_before = error, monotonic() + PAUSE_SECONDS
            raise
        self.error = None
        return connections

    async def disconnect(self) -> None:
        """Close the connection at once, whatever it is doing; the next use opens another."""
        connection, raw = self._connection, self._raw
        self._connection = self._raw = None
        if raw is not None:
            raw.terminate()
        if connection is not None:
            with suppress(Exception):
                await connection.close()

    async def dispose(self) -> None:
        with suppress(Exception):
            await self.disconnect()
        with suppress(Exception):
            await self._engine.dispose()
