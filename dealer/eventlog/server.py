"""A PostgreSQL server as the archive of several nodes at once: its address, and the way to it.

The SQL of this package has `?` where a value goes; on the way to PostgreSQL it becomes `$1`, `$2` …
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from dealer.errors import DatabaseAway, DatabaseError, Overloaded, SetupError
from dealer.eventlog.faults import explain
from dealer.eventlog.sqlite import database_file

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

CONNECT_SECONDS = 5.0
_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds between attempts to reach a server that is away; the last one again and again."""

# Whatever a database or a role has for its defaults: a log must not depend on it. A host that
# vanishes must not keep its locks, for nobody could append to those tables.
_SETTINGS = {
    "application_name": "dealer",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "idle_in_transaction_session_timeout": "20s",
    "jit": "off",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def is_postgres(url: str) -> bool:
    """Whether this is the address of a PostgreSQL database; False for any other text."""
    return url.partition("://")[0] in _SCHEMES


def check_address(url: str) -> str:
    """The address as it may be shown, without a password; SetupError if it is none of a log's."""
    if is_postgres(url):
        return Server(url).name
    database_file(url)
    return url


class Server:
    """One PostgreSQL database; `name` is its address without password and options.

    `url` is a `postgresql://…` address with whatever options libpq knows (`host=` for a socket's
    folder, `sslmode`, `passfile`). For `patience` seconds an answer is waited for while the
    database is away. Raises SetupError if `url` is no such address.
    """

    def __init__(self, url: str, *, patience: float = 0.0) -> None:
        rest = url.partition("://")[2]
        authority = re.split("[/?#]", rest, maxsplit=1)[0]
        if "#" in rest or rest.count("@") != authority.count("@") or authority.count("@") > 1:
            raise SetupError(
                "The database's address is not understood; write @ / # ? % in a password as "
                "%40 %2F %23 %3F %25, or use DEALER_DATABASE_PASSWORD_FILE."
            )
        try:
            parsed = make_url(url)
            self._options = [
                name for name, _ in parse_qsl(urlsplit(url).query, strict_parsing=True)
            ]
        except (ArgumentError, ValueError):
            parsed = None
        if parsed is None or not is_postgres(url) or not parsed.database:
            raise SetupError(
                "The database's address is not understood; write it like "
                "postgresql://user:password@host:5432/dealer."
            )
        self._dsn = f"postgresql://{rest}"
        self.name = URL.create(
            "postgresql",
            username=parsed.username,
            host=parsed.host,
            port=parsed.port,
            database=parsed.database,
        ).render_as_string()
        self.patience = patience

    async def connect(self, **settings: str) -> asyncpg.Connection[Any]:
        """A connection of the driver's own; raises what the driver raises.

        Of an option in the address that makes no sense it is a DatabaseError.
        """
        import asyncpg

        try:
            return await asyncpg.connect(
                self._dsn, timeout=CONNECT_SECONDS, server_settings=_SETTINGS | settings
            )
        except (asyncpg.PostgresError, asyncpg.ClientConfigurationError) as error:
            # What the driver does not know goes to the server as a setting.
            wrong = [name for name in self._options if re.search(rf"[\"`]{name}[\"`]", str(error))]
            if not wrong:
                raise
            raise DatabaseError(
                f"The address of the database {self.name} has an option that is not known, or a "
                f"value that it cannot have: {', '.join(wrong)}."
            ) from None

    def engine(self, settings: dict[str, str], **options: Any) -> AsyncEngine:
        """Connections as SQLAlchemy has them, each statement a transaction unless one is begun."""

        async def connect(*_: Any, **__: Any) -> Any:
            return await self.connect(**settings)

        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,
            **options,
        )
        event.listen(engine.sync_engine, "before_cursor_execute", _number, retval=True)
        return engine

    async def patiently(self, work: Callable[[], Awaitable[T]], *, patience: float) -> T:
        """What `work` gives, tried again for `patience` seconds while the database is away.

        Raises DatabaseAway after that, and at once any other DatabaseError.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        for attempt in count():
            try:
                return await work()
            except Overloaded:
                raise
            except Exception as error:
                told = explain(error, name=self.name)
                if not isinstance(told, DatabaseAway) or loop.time() >= until:
                    raise told from error
            pause = _PAUSES[min(attempt, len(_PAUSES) - 1)]
            # The clock's last digits will do for dice: nodes must not all knock at once.
            await asyncio.sleep(pause * (0.5 + loop.time() * 1e6 % 1))
        raise AssertionError("unreachable")


def _number(
    connection: object, cursor: object, statement: str, parameters: Any, *_: object
) -> tuple[str, Any]:
    return numbered(statement), parameters


@lru_cache(maxsize=1024)
def numbered(statement: str) -> str:
    """The statement with `$1`, `$2` … in place of each `?`."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)
