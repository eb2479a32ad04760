"""What a house can be told before it opens: where its log lies, where it listens, what it bears.

Nothing has to be told. Each setting is an option of `dealer serve` and a variable of the
environment, `DEALER_PORT` for `--port`, the database's being `DEALER_DATABASE_URL` and the key's
`DEALER_HOUSE_KEY_FILE`; a limit is `--limit rate=20` or `DEALER_LIMIT_RATE=20`. An option outdoes a
variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_network
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from dealer.errors import SetupError

if TYPE_CHECKING:
    from dealer.gateway.limits import Limits

DATABASE = "sqlite:///dealer.db"
DATABASE_VARIABLE = "DEALER_DATABASE_URL"
HOUSE_KEY_VARIABLE = "DEALER_HOUSE_KEY_FILE"
PASSWORD_FILE_VARIABLE = "DEALER_DATABASE_PASSWORD_FILE"
LIMIT_VARIABLE = "DEALER_LIMIT_"
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA")
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_HOST_NAME = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\.?")


class Setting(NamedTuple):
    """One thing that a house can be told; `name` is its attribute in `Settings`.

    `flag` is empty where it has none of its own. The help of the options, `dealer config` and the
    operators' document all say what stands here.
    """

    name: str
    flag: str
    variable: str
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "database",
        "--database",
        DATABASE_VARIABLE,
        "Where the log is kept: sqlite:/// and a path, absolute with a fourth slash, or "
        "postgresql://user:password@host/database.",
    ),
    Setting(
        "password_file",
        "",
        PASSWORD_FILE_VARIABLE,
        "A file with the password for a PostgreSQL address that names a user and no password.",
    ),
    Setting(
        "house_key",
        "--house-key",
        HOUSE_KEY_VARIABLE,
        "Where the house's key is; beside an SQLite file if not given.",
    ),
    Setting(
        "marks",
        "--marks",
        "DEALER_MARKS",
        "Folder for the marks, which tell a restored older database; beside the key if not given.",
    ),
    Setting("host", "--host", "DEALER_HOST", "Where to listen; 0.0.0.0 for every network."),
    Setting("port", "--port", "DEALER_PORT", "The players' port; 0 takes a free one."),
    Setting(
        "ops_host",
        "--ops-host",
        "DEALER_OPS_HOST",
        "Where the operator's port listens; elsewhere than here for a load balancer or Prometheus "
        "on another machine, and then behind a firewall.",
    ),
    Setting(
        "ops_port",
        "--ops-port",
        "DEALER_OPS_PORT",
        "The operator's port: /healthz, /readyz, /metrics; 0 takes a free one.",
    ),
    Setting(
        "house",
        "--house",
        "DEALER_HOUSE",
        "The name under which new tables are signed; those that are there keep theirs.",
    ),
    Setting(
        "origins",
        "--origin",
        "DEALER_ORIGIN",
        "A web origin whose pages may connect besides the house's own; * for all. May be given "
        "several times; in the variable with spaces between.",
    ),
    Setting(
        "host_names",
        "--host-name",
        "DEALER_HOST_NAME",
        "A name that browsers reach the server by, like cards.example.org, besides localhost, IP "
        "addresses and the names in --host, --house and --origin; *.example.org for all below one, "
        "* for any. May be given several times; in the variable with spaces between.",
    ),
    Setting(
        "trusted_proxies",
        "--trusted-proxy",
        "DEALER_TRUSTED_PROXY",
        "A proxy's address or network, like 10.0.0.0/8, whose X-Forwarded-For is believed. May be "
        "given several times; in the variable with spaces between.",
    ),
    Setting(
        "archive",
        "--archive",
        "DEALER_ARCHIVE",
        "The folder of `dealer archive`, out of which bundles of archived tables are served.",
    ),
    Setting(
        "synchronous",
        "--synchronous",
        "DEALER_SYNCHRONOUS",
        "FULL, EXTRA or NORMAL, which is quicker and can lose acknowledged events at a power cut.",
    ),
    Setting(
        "memory",
        "--memory",
        "DEALER_MEMORY",
        "MiB that tables in memory take: past it idle ones leave, and where all are in use no more "
        "are loaded or opened.",
    ),
    Setting(
        "tables",
        "--tables",
        "DEALER_TABLES",
        "Idle tables that stay in memory at the most, however small they are.",
    ),
    Setting(
        "lobby_per_address",
        "--lobby-per-address",
        "DEALER_LOBBY_PER_ADDRESS",
        "Open tables of one address (IPv6: /64) that the lobby lists at the most.",
    ),
    Setting(
        "close_empty",
        "--close-empty",
        "DEALER_CLOSE_EMPTY",
        "Age, like 24h, after which a table closes at which no seat is taken, no round is open and "
        "nothing happened; 0 is never.",
    ),
    Setting(
        "close_idle",
        "--close-idle",
        "DEALER_CLOSE_IDLE",
        "Age, like 90d, after which a table closes at which nothing happened, whoever sits there; "
        "0 is never.",
    ),
    Setting(
        "disk_floor",
        "--disk-floor",
        "DEALER_DISK_FLOOR",
        "MiB of free disk below which no tables and rounds are opened, on SQLite; 0 is never.",
    ),
    Setting("queue", "--queue", "DEALER_QUEUE", "Appends that may wait for their commit."),
    Setting("batch", "--batch", "DEALER_BATCH", "Appends in one commit at the most."),
    Setting(
        "busy",
        "--busy",
        "DEALER_BUSY",
        "Seconds to wait while another program holds the database.",
    ),
    Setting(
        "log_format",
        "--log-format",
        "DEALER_LOG_FORMAT",
        "console, lines for a person, or json, an object a line.",
    ),
    Setting(
        "log_level",
        "--log-level",
        "DEALER_LOG_LEVEL",
        "DEBUG, INFO, WARNING or ERROR: how much is written on standard error.",
    ),
)
"""All settings but the limits, which `LIMITS` names."""

LIMITS: Mapping[str, str] = {
    "message": "bytes of one message from a client",
    "rate": "commands a second of one connection; 52 cards to shuffle are one more",
    "burst": "commands of one connection at once",
    "automatic_rate": "messages a second that clients send by themselves for a shuffle",
    "automatic_burst": "such messages at once",
    "patience": "refusals for haste in a row before a connection is closed",
    "address_rate": "messages and requests a second of one client address, over all connections",
    "address_burst": "such messages and requests at once",
    "address_bytes": "bytes a second that are written to disk for one client address",
    "address_bytes_burst": "such bytes at once",
    "address_cpu": "seconds of the server's time, in each second, that one client address may use",
    "address_cpu_burst": "such seconds at once",
    "tables_per_hour": "tables that one client address may open, all at once or over an hour",
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
    "history": "events of a table whose history is made for the web",
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

    `SETTINGS` says what each of them is; `house` is the name in the origin of every checkpoint.
    `synchronous` FULL or EXTRA keeps what was acknowledged through a power cut, NORMAL through
    the end of the process only. Raises SetupError on a value that none of them can have.
    """

    database: str = field(default=DATABASE, repr=False)
    password_file: Path | None = None
    house_key: Path | None = None
    marks: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    ops_host: str = "127.0.0.1"
    ops_port: int = 9090
    house: str = "localhost"
    origins: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    archive: Path | None = None
    synchronous: str = "FULL"
    memory: int = 64
    tables: int = 10_000
    lobby_per_address: int = 5
    close_empty: str = "24h"
    close_idle: str = "0"
    disk_floor: int = 256
    queue: int = 8192
    batch: int = 512
    busy: float = 10.0
    log_format: str = "console"
    log_level: str = "INFO"
    limits: Limits = field(default_factory=_limits)

    def __post_init__(self) -> None:
        if (
            not self.house
            or "+" in self.house
            or not self.house.isprintable()
            or (self.house != "".join(self.house.split()))
        ):
            raise SetupError("The house's name has no space and no +, like cards.example.org.")
        for name, values in (
            ("synchronous", SYNCHRONOUS),
            ("log_format", LOG_FORMATS),
            ("log_level", LOG_LEVELS),
        ):
            if getattr(self, name) not in values:
                raise SetupError(f"--{name.replace('_', '-')} is one of {', '.join(values)}.")
        for name in self.host_names:
            if not _HOST_NAME.fullmatch(name):
                raise SetupError(
                    "--host-name is a name like cards.example.org, without scheme, port or path, "
                    f"not {name!r}."
                )
        for network in self.trusted_proxies:
            try:
                ip_network(network, strict=False)
            except ValueError:
                raise SetupError(
                    f"--trusted-proxy is an address or a network like 10.0.0.0/8, not {network!r}."
                ) from None
        for port in (self.port, self.ops_port):
            if not 0 <= port <= 65535:
                raise SetupError(f"A port is a number from 0 to 65535, not {port}.")
        for name in ("memory", "tables", "lobby_per_address", "queue", "batch"):
            if getattr(self, name) < 1:
                raise SetupError(f"--{name.replace('_', '-')} is at least 1.")
        if self.disk_floor < 0:
            raise SetupError("--disk-floor is 0 or more.")
        for name in ("close_empty", "close_idle"):
            age_ms(getattr(self, name), of=f"--{name.replace('_', '-')}")


_AGE = re.compile(r"([0-9]{1,6})([dhm])")
_AGE_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}


def age_ms(text: str, *, of: str) -> int:
    """Milliseconds of an age like 90d, 36h or 30m, 0 for 0; SetupError names `of` for any other."""
    match = _AGE.fullmatch(text)
    if match is None and text != "0":
        raise SetupError(f"{of} is an age like 90d, 36h or 30m, or 0 for never, not {text!r}.")
    return 0 if match is None else int(match[1]) * _AGE_UNITS[match[2]]


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


def with_password(url: str, environ: Mapping[str, str]) -> str:
    """The address with the password out of the file that the environment names, if it has none.

    Raises SetupError if that file cannot be read or is empty.
    """
    name = environ.get(PASSWORD_FILE_VARIABLE)
    scheme, _, rest = url.partition("://")
    user, at, place = rest.partition("@")
    if not name or not scheme.startswith("postgres") or not at or not user or ":" in user:
        return url
    try:
        password = Path(name).read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or "it is no text"
        raise SetupError(
            f"{PASSWORD_FILE_VARIABLE} names {name}, which cannot be read: {what}."
        ) from None
    if not password:
        raise SetupError(f"{PASSWORD_FILE_VARIABLE} names {name}, which is empty.")
    return f"{scheme}://{user}:{quote(password, safe='')}@{place}"


def masked(url: str) -> str:
    """A database's address without its password."""
    scheme, slashes, rest = url.partition("://")
    place, at, host = rest.rpartition("@")
    user, colon, _ = place.partition(":")
    shown = f"{scheme}{slashes}{user}{':***' if colon else ''}{at}{host}"
    before, question, options = shown.partition("?")
    pairs = [
        f"{name}=***" if "pass" in name.lower() and name != "passfile" else pair
        for pair in options.split("&")
        for name in [pair.partition("=")[0]]
    ]
    return before + question + "&".join(pairs)
