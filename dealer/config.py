"""What a house can be told before it opens: where its log lies, where it listens, what it bears.

Nothing has to be told. Each setting is an option of `dealer serve` and a variable of the
environment, `DEALER_PORT` for `--port`, the database's being `DEALER_DATABASE_URL`; a limit is
`--limit rate=20` or `DEALER_LIMIT_RATE=20`. An option outdoes a variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from dealer.errors import SetupError

if TYPE_CHECKING:
    from dealer.gateway.limits import Limits

DATABASE = "sqlite:///dealer.db"
DATABASE_VARIABLE = "DEALER_DATABASE_URL"
LIMIT_VARIABLE = "DEALER_LIMIT_"
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA")

LIMITS: Mapping[str, str] = {
    "message": "bytes of one message from a client",
    "rate": "commands a second of one connection",
    "burst": "commands of one connection at once",
    "automatic_rate": "messages a second that clients send by themselves for a shuffle",
    "automatic_burst": "such messages at once",
    "patience": "refusals for haste in a row before a connection is closed",
    "tables": "tables of one connection",
    "connections": "connections in all",
    "connections_per_address": "connections from one address",
    "opening": "seconds for the handshake, and again for the first request",
    "sending": "seconds until a full buffer must have emptied",
    "closing": "seconds until the other end must have closed, too",
    "keepalive": "seconds between pings; who is silent for two of them is gone",
    "buffer": "bytes that may wait for a connection before it counts as slow",
    "chunk": "events at a time for a connection that is behind",
    "resume": "events that one may be behind and still be sent each of them",
    "held": "requests that may wait behind one that reads the log",
    "drain": "seconds within which the house has closed when it is told to",
}
"""What each of `dealer.gateway.limits.Limits` bounds."""


def _limits() -> Limits:
    # The gateway brings the websocket library with it, which a page of help does not need.
    from dealer.gateway.limits import Limits

    return Limits()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one house is run.

    `database` is a `sqlite:///…` address; `host` and `port` are where players come in, `ops_port`
    where the operator's own questions (health, metrics) are answered, on this machine alone, and
    0 has the system choose a free port. `house` is the name in the origin of every checkpoint.
    `origins` are web origins whose pages may connect besides the house's own. `synchronous` FULL
    or EXTRA keeps what was acknowledged through a power cut, NORMAL through the end of the process
    only. `tables` stay in memory beside those that somebody listens to. `batch` is how many
    appends share a commit at the most and `queue` how many may wait for one; for `busy` seconds
    the house waits when another program holds the database.
    """

    database: str = DATABASE
    host: str = "127.0.0.1"
    port: int = 8080
    ops_port: int = 9090
    house: str = "localhost"
    origins: tuple[str, ...] = ()
    synchronous: str = "FULL"
    tables: int = 10_000
    queue: int = 8192
    batch: int = 512
    busy: float = 10.0
    limits: Limits = field(default_factory=_limits)

    def __post_init__(self) -> None:
        if (
            not self.house
            or "+" in self.house
            or not self.house.isprintable()
            or (self.house != "".join(self.house.split()))
        ):
            raise SetupError("The house's name has no space and no +, like cards.example.org.")
        if self.synchronous not in SYNCHRONOUS:
            raise SetupError(f"--synchronous is one of {', '.join(SYNCHRONOUS)}.")
        for port in (self.port, self.ops_port):
            if not 0 <= port <= 65535:
                raise SetupError(f"A port is a number from 0 to 65535, not {port}.")
        for name in ("tables", "queue", "batch"):
            if getattr(self, name) < 1:
                raise SetupError(f"--{name} is at least 1.")


def read_limits(pairs: Iterable[str], environ: Mapping[str, str]) -> Limits:
    """Limits from `name=value` pairs and from variables; SetupError on what is none of them."""
    limits = _limits()
    kinds = {one.name: type(getattr(limits, one.name)) for one in fields(limits)}
    told = {
        name: (environ[variable], variable)
        for name in kinds
        if environ.get(variable := f"{LIMIT_VARIABLE}{name.upper()}")
    }
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in kinds:
            raise SetupError(f"--limit is NAME=VALUE, where NAME is one of {', '.join(kinds)}.")
        told[name] = (value, f"--limit {name}")
    values: dict[str, Any] = {
        name: _above_zero(kinds[name], text, where) for name, (text, where) in told.items()
    }
    return replace(limits, **values)


def _above_zero(kind: type[int] | type[float], text: str, where: str) -> int | float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not (isfinite(value) and value > 0):
        what = "a whole number" if kind is int else "a number"
        raise SetupError(f"{where} is {what} above 0, not {text!r}.")
    return value
