"""Declarations of the settings of `dealer serve`: flag, variable, help, type, default and check.

Limits are settings, too: `--limit rate=20` or `DEALER_LIMIT_RATE=20`. A flag takes precedence over
an environment variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from dealer.config import checks
from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from dealer.gateway.limits import Limits

T = TypeVar("T")

DATABASE_VARIABLE = "DEALER_DATABASE_URL"
WHO = ("anyone", "service")

LIMIT_VARIABLE = "DEALER_LIMIT_"

LIMITS: Mapping[str, str] = {
    "message": "bytes of one message from a client",
    "rate": "commands per second of one connection; 52 cards to shuffle count as one more",
    "burst": "commands of one connection in a burst",
    "automatic_rate": "messages per second that clients send automatically for a shuffle",
    "automatic_burst": "such messages in a burst",
    "patience": "rate-limited messages in a burst, of a connection or address, until it is cut off",
    "address_rate": "messages and requests per second of one client address, all connections",
    "address_burst": "such messages and requests in a burst",
    "address_bytes": "bytes per second that are written to disk for one client address",
    "address_bytes_burst": "such bytes in a burst",
    "address_cpu": "seconds of server time, per second, that one client address may use",
    "address_cpu_burst": "such seconds in a burst",
    "tables_per_hour": "tables that one client address may open per hour, or in a burst",
    "house_tables_per_hour": "tables that all clients without a service key may open per hour, "
    "or a tenth of them in a burst",
    "key_rate": "messages and requests per second of one service key, all connections",
    "key_burst": "such messages and requests in a burst",
    "key_bytes": "bytes per second that are written to disk for one service key",
    "key_bytes_burst": "such bytes in a burst",
    "key_cpu": "seconds of server time, per second, that one service key may use",
    "key_cpu_burst": "such seconds in a burst",
    "key_connections": "connections of one service key",
    "tables": "tables of one connection; a service has no such limit",
    "connections": "connections in total",
    "connections_per_address": "connections from one address",
    "opening": "timeout in seconds of the handshake, and then of the first request",
    "idle": "seconds that a connection kept after a POST may wait for the next request, and that "
    "the download of a bundle may pause, beside a second for each KiB of a full write buffer",
    "sending": "timeout in seconds for a full write buffer to be sent",
    "closing": "timeout in seconds of the closing handshake",
    "keepalive": "seconds between pings; a client that misses two is disconnected",
    "buffer": "bytes waiting to be sent before a connection counts as slow",
    "chunk": "events per read of the backlog of a lagging connection",
    "resume": "missed events above which a resume sends a snapshot instead",
    "history": "events of a table above which no history is made over HTTP",
    "held": "requests queued behind one that reads the log",
    "drain": "seconds within which the server has closed after a signal to stop",
}
"""What each of `dealer.gateway.limits.Limits` bounds."""


def default_limits() -> Limits:
    # The gateway imports the websocket library, which a page of help does not need.
    from dealer.gateway.limits import Limits

    return Limits()


class Setting(NamedTuple):
    """The declaration of one setting; `name` is its attribute in `Settings`.

    `flag` is empty if it only has an environment variable. `metavar` is the unit, kind or choices
    of its value in a page of help, which shows the settings that are `common`.
    """

    name: str
    type: Any
    default: Any
    help: str
    flag: str
    variable: str
    metavar: str
    choices: tuple[str, ...]
    check: checks.Check | None
    common: bool

    def require(self, value: Any) -> None:
        """Raise ConfigurationError, which names the flag, if a value that is given is wrong."""
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str | Path) and self.metavar != "TEXT":
                checks.check_unquoted(f"{self.flag} ({self.variable})", str(text))
        if self.choices and value not in self.choices:
            raise ConfigurationError(f"{self.flag} must be one of {', '.join(self.choices)}.")
        if self.check is not None and value not in (None, ()):
            self.check(self.flag, value)


def setting(
    default: T,
    help: str,
    *,
    metavar: str = "",
    choices: tuple[str, ...] = (),
    check: checks.Check | None = None,
    flag: str | None = None,
    variable: str | None = None,
    common: bool = False,
    repr: bool = True,
) -> T:
    """A field of `Settings`; flag and variable follow from its name, unless they are given."""
    metadata = {
        "help": help,
        "flag": flag,
        "variable": variable,
        "metavar": metavar or "|".join(choices),
        "choices": choices,
        "check": check,
        "common": common,
    }
    return field(default=default, repr=repr, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one server. Raises ConfigurationError for a value that is not allowed."""

    database: str = setting(
        "sqlite:///dealer.db",
        "Where the log is stored: the path of an SQLite file, or postgresql://user:password@host/"
        "database. A path after sqlite:/// is encoded as in a URL; a fourth slash makes it "
        "absolute.",
        metavar="URL",
        variable=DATABASE_VARIABLE,
        repr=False,
        common=True,
    )
    password_file: Path | None = setting(
        None,
        "A file with the password for a PostgreSQL URL that names a user and no password.",
        metavar="FILE",
        flag="",
        variable=checks.PASSWORD_FILE_VARIABLE,
    )
    house_key: Path | None = setting(
        None,
        "File of the house key. Default: the SQLite file's name with .key; PostgreSQL has none.",
        metavar="FILE",
        variable="DEALER_HOUSE_KEY_FILE",
        common=True,
    )
    marks: Path | None = setting(
        None,
        "Folder for the high-water marks, by which the server detects a database restored "
        "from an older backup. If not given, it is next to the key.",
        metavar="FOLDER",
    )
    host: str = setting(
        "127.0.0.1",
        "Address to listen on; 0.0.0.0 for every network.",
        metavar="ADDRESS",
        common=True,
    )
    port: int = setting(
        8080,
        "Port for players; 0 chooses a free one.",
        metavar="PORT",
        check=checks.check_port,
        common=True,
    )
    ops_host: str = setting(
        "127.0.0.1",
        "Address that the operator's port listens on. If a load balancer or Prometheus on "
        "another machine needs it, change it and protect the port by a firewall.",
        metavar="ADDRESS",
    )
    ops_port: int = setting(
        9090,
        "The operator's port: /healthz, /readyz, /metrics; 0 chooses a free one.",
        metavar="PORT",
        check=checks.check_port,
        common=True,
    )
    service_host: str = setting(
        "127.0.0.1",
        "Address that the services' port listens on, if there is one.",
        metavar="ADDRESS",
    )
    service_port: int | None = setting(
        None,
        "A port for connections with a service key (`dealer key`) only, besides the players' "
        "port, which accepts them too; 0 chooses a free one.",
        metavar="PORT",
        check=checks.check_port,
    )
    open_tables: str = setting(
        "anyone",
        "Who may open tables: anyone, or service: only clients with a service key.",
        choices=WHO,
    )
    lobby: str = setting(
        "anyone",
        "Who may list the open public tables: anyone, or service: only services, each its own.",
        choices=WHO,
    )
    finished: str = setting(
        "anyone",
        "Who may list the closed public tables: anyone, or service: only services, each its own.",
        choices=WHO,
    )
    house: str = setting(
        "localhost",
        "The house's name in the signatures of new tables; existing tables keep theirs.",
        metavar="NAME",
        check=checks.check_house,
        common=True,
    )
    origins: tuple[str, ...] = setting(
        (),
        "A web origin whose pages may connect besides the server's own pages; * for all. Without "
        "it, pages on localhost may connect, too. May be given several times; in the variable "
        "separated by spaces.",
        metavar="ORIGIN",
        check=checks.check_origins,
        flag="--origin",
        common=True,
    )
    frame_ancestors: tuple[str, ...] = setting(
        (),
        "An origin, like https://game.example.org, whose pages may show the pages of this "
        "server in a frame; none if not given. May be given several times; in the variable "
        "separated by spaces.",
        metavar="ORIGIN",
        check=checks.check_frame_ancestors,
        flag="--frame-ancestor",
        variable="DEALER_FRAME_ANCESTORS",
    )
    title: str | None = setting(
        None,
        "Your name for this server, which its pages show.",
        metavar="TEXT",
        check=checks.check_title,
    )
    logo: Path | None = setting(
        None,
        "An image (.svg, .png, .jpg or .webp, at most 128 KiB) that the pages show.",
        metavar="FILE",
        check=checks.read_logo,
    )
    colours: tuple[str, ...] = setting(
        (),
        "A colour of the pages, like felt=#1d4b3a: accent (buttons), accent-ink (text on them)"
        " or felt (the table). Text must have a contrast of 4.5:1. May be given several times;"
        " in the variable separated by spaces.",
        metavar="NAME=#RRGGBB",
        check=checks.palette,
        flag="--colour",
        variable="DEALER_COLOURS",
    )
    packs: Path | None = setting(
        None,
        "A folder with your packs of cards (.json, .csv), besides those of this version.",
        metavar="FOLDER",
    )
    games: Path | None = setting(
        None,
        "A folder with your game files (.json), besides those of this version.",
        metavar="FOLDER",
    )
    host_names: tuple[str, ...] = setting(
        (),
        "A further name by which browsers may reach the server, like cards.example.org; "
        "*.example.org for all names below example.org, * for any. localhost, IP addresses and "
        "the names in --host, --house and --origin are accepted without it. May be given several "
        "times; in the variable separated by spaces.",
        metavar="NAME",
        check=checks.check_host_names,
        flag="--host-name",
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Address or network of a proxy, like 10.0.0.0/8, whose headers X-Forwarded-For, "
        "X-Forwarded-Proto, X-Forwarded-Host and Forwarded are used. May be given several times; "
        "in the variable separated by spaces.",
        metavar="CIDR",
        check=checks.check_networks,
        flag="--trusted-proxy",
        common=True,
    )
    path: str = setting(
        "/",
        "The path under which a proxy serves this server, like /cards/, whether it passes the "
        "path on or not.",
        metavar="PATH",
        check=checks.check_path,
    )
    issuer: str | None = setting(
        None,
        "URL of an identity provider whose users take seats by its JWTs, exactly as in their "
        "`iss`; needs --audience.",
        metavar="URL",
    )
    audience: str | None = setting(
        None, "What these JWTs have in `aud`: the provider's name for this server.", metavar="NAME"
    )
    jwks: str | None = setting(
        None,
        "URL or file of the provider's keys (JWKS). If not given, its "
        "/.well-known/openid-configuration says where they are.",
        metavar="URL",
    )
    archive: Path | None = setting(
        None,
        "The folder of `dealer tables archive`, from which bundles of archived tables are served.",
        metavar="FOLDER",
        common=True,
    )
    synchronous: str = setting(
        "FULL",
        "FULL, EXTRA or NORMAL. NORMAL is faster and can lose acknowledged events in a power cut.",
        choices=("FULL", "NORMAL", "EXTRA"),
    )
    commit: str = setting(
        "auto",
        "Where appends to an SQLite file are committed: auto, loop (on the event loop's thread,"
        " which uses less CPU, and where a slow disk stalls all players) or thread (in a "
        "thread of its own). auto measures the disk.",
        choices=("auto", "thread", "loop"),
    )
    memory: int = setting(
        64,
        "MiB for tables in memory. Above it idle tables leave memory; if all are in use, no "
        "table is loaded or opened.",
        metavar="MIB",
        check=checks.at_least(1),
    )
    tables: int = setting(
        10_000,
        "Maximum number of idle tables that stay in memory, however small they are.",
        metavar="COUNT",
        check=checks.at_least(1),
    )
    lobby_per_address: int = setting(
        5,
        "Maximum number of open tables of one address (IPv6: /64) that the lobby lists.",
        metavar="COUNT",
        check=checks.at_least(1),
    )
    close_empty: str = setting(
        "24h",
        "Close a table whose newest event is older than this, like 24h, if no seat is taken and "
        "no round is open; 0 means never.",
        metavar="AGE",
        check=checks.age_ms,
    )
    close_idle: str = setting(
        "0",
        "Close a table whose newest event is older than this, like 90d, even if seats are taken "
        "or a round is open; 0 means never.",
        metavar="AGE",
        check=checks.age_ms,
    )
    decks: str = setting(
        "on",
        "on or off: whether there are decks over simple REST, at /api/deck/new/.",
        choices=("on", "off"),
    )
    close_decks: str = setting(
        "14d",
        "Close a deck of the simple REST interface whose newest event is older than this, like "
        "14d; 0 means never.",
        metavar="AGE",
        check=checks.age_ms,
    )
    host_absent: str = setting(
        "10m",
        "Time, like 10m, that a host may be absent before the connected player who has been seated"
        " longest, and is not a bot, becomes host, except at tables of services; 0 means never.",
        metavar="AGE",
        check=checks.age_ms,
    )
    webhook_give_up: str = setting(
        "3d",
        "Time, like 3d, for which a webhook may fail before it is switched off; 0 means never.",
        metavar="AGE",
        check=checks.age_ms,
    )
    disk_floor: int = setting(
        256,
        "MiB of free disk below which no tables and rounds open, on SQLite; 0 means never.",
        metavar="MIB",
        check=checks.at_least(0),
    )
    queue: int = setting(
        8192,
        "Maximum number of appends that wait for their commit.",
        metavar="COUNT",
        check=checks.at_least(1),
    )
    batch: int = setting(
        512, "Maximum number of appends in one commit.", metavar="COUNT", check=checks.at_least(1)
    )
    busy: float = setting(
        10.0, "Seconds to wait while another program locks the database.", metavar="SECONDS"
    )
    log_format: str = setting(
        "console",
        "console for readable lines, or json for one object per line.",
        choices=("console", "json"),
    )
    log_level: str = setting(
        "INFO",
        "DEBUG, INFO, WARNING or ERROR: the lowest level that is logged to standard error.",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    otlp_traces: str | None = setting(
        None,
        "URL of an OpenTelemetry collector, like http://localhost:4318/v1/traces, that spans "
        "of requests, commits and projections are sent to; needs `pip install '.[otel]'` in the "
        "source folder.",
        metavar="URL",
    )
    insecure_test_decks: bool = setting(
        False,
        "For tests only: tables with the rule insecure_test_deck get the cards that it names. "
        "Every page and log line says so, and no verifier accepts such a table as proof.",
    )
    limits: Limits = field(default_factory=default_limits)

    def __post_init__(self) -> None:
        for name in ("host", "ops_host", "service_host"):  # IPv6 as in addresses of pages
            unbracketed = getattr(self, name).removeprefix("[").removesuffix("]")
            object.__setattr__(self, name, unbracketed)
        for setting in SETTINGS:
            setting.require(getattr(self, setting.name))
        checks.check_games(self.packs, self.games)
        checks.check_issuer(self.issuer, self.audience, self.jwks)


def _declared() -> Iterator[Setting]:
    types = get_type_hints(Settings, localns={"Limits": object})
    for declared in fields(Settings):
        if declared.metadata:
            name, given = declared.name, dict(declared.metadata)
            if given["flag"] is None:
                given["flag"] = f"--{name.replace('_', '-')}"
            if given["variable"] is None:
                given["variable"] = f"DEALER_{given['flag'][2:].replace('-', '_').upper()}"
            yield Setting(name, types[name], declared.default, **given)


SETTINGS = tuple(_declared())
"""All settings but the limits, which `LIMITS` names."""

DATABASE = Settings.database


def read_limits(pairs: Iterable[str], environ: Mapping[str, str]) -> Limits:
    """Limits from `name=value` pairs and variables; ConfigurationError for a wrong one."""
    limits = default_limits()
    kinds = {limit.name: type(getattr(limits, limit.name)) for limit in fields(limits)}
    given = {
        name: (environ[variable], variable)
        for name in kinds
        if environ.get(variable := f"{LIMIT_VARIABLE}{name.upper()}")
    }
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in kinds:
            similar = get_close_matches(name, kinds, n=1)
            meant = f" Did you mean {similar[0]}?" if similar else ""
            raise ConfigurationError(
                f"--limit must be NAME=VALUE, where NAME is one of {', '.join(kinds)}.{meant}"
            )
        if given.get(name, ("", ""))[1] == (where := f"--limit {name}"):
            raise ConfigurationError(f"{where} is given more than once.")
        given[name] = (value, where)
    values: dict[str, Any] = {
        name: _above_zero(kinds[name], text, where) for name, (text, where) in given.items()
    }
    return replace(limits, **values)


def _above_zero(kind: type[int] | type[float], text: str, where: str) -> int | float:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not (isfinite(value) and value > 0):
        what = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"{where} must be {what} above 0, not {text!r}.")
    return value
