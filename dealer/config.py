"""What a house can be told before it opens: where its log lies, where it listens, what it bears.

Nothing has to be told. Each setting is an option of `dealer serve` and a variable of the
environment, `DEALER_PORT` for `--port`, the database's being `DEALER_DATABASE_URL` and the key's
`DEALER_HOUSE_KEY_FILE`; a limit is `--limit rate=20` or `DEALER_LIMIT_RATE=20`. An option outdoes a
variable.
"""

from __future__ import annotations

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
    Setting("tables", "--tables", "DEALER_TABLES", "Idle tables that stay in memory at the most."),
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
    trusted_proxies: tuple[str, ...] = ()
    archive: Path | None = None
    synchronous: str = "FULL"
    tables: int = 10_000
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
