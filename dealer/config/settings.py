"""Declarations of the settings of `dealer serve`: flag, variable, help, type, default and check."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

from dealer.config.checks import (
    Check,
    at_least,
    check_age,
    check_colours,
    check_frame_ancestors,
    check_games,
    check_host_names,
    check_house,
    check_issuer,
    check_logo,
    check_networks,
    check_port,
    check_title,
)
from dealer.config.database_url import PASSWORD_FILE_VARIABLE
from dealer.config.limits import default_limits
from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from dealer.gateway.limits import Limits

DATABASE_VARIABLE = "DEALER_DATABASE_URL"
SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA")
COMMIT = ("auto", "thread", "loop")
WHO = ("anyone", "service")
SWITCH = ("on", "off")
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Option(NamedTuple):
    """How a setting is given: `flag` is empty if it only has an environment variable.

    `metavar` is the unit or kind of its value in a page of help; a setting with `choices` has none.
    """

    flag: str
    variable: str
    help: str
    metavar: str = ""
    check: Check | None = None
    choices: tuple[str, ...] = ()


class Setting(NamedTuple):
    """The declaration of one setting; `name` is its attribute in `Settings`."""

    name: str
    type: Any
    default: Any
    option: Option

    def check(self, value: Any) -> None:
        """Raise ConfigurationError, which names the flag, if the value is not allowed."""
        flag, *_, check, choices = self.option
        if choices and value not in choices:
            raise ConfigurationError(f"{flag} must be one of {', '.join(choices)}.")
        if check is not None:
            check(flag, value)

    @property
    def metavar(self) -> str:
        return self.option.metavar or "|".join(self.option.choices)

    @property
    def flag(self) -> str:
        return self.option.flag

    @property
    def variable(self) -> str:
        return self.option.variable

    @property
    def help(self) -> str:
        return self.option.help


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one server. Raises ConfigurationError for a value that is not allowed."""

    database: Annotated[
        str,
        Option(
            "--database",
            DATABASE_VARIABLE,
            "Where the log is stored: sqlite:/// and a path (a fourth slash makes it absolute), "
            "or postgresql://user:password@host/database.",
            metavar="URL",
        ),
    ] = field(default="sqlite:///dealer.db", repr=False)
    password_file: Annotated[
        Path | None,
        Option(
            "",
            PASSWORD_FILE_VARIABLE,
            "A file with the password for a PostgreSQL address that names a user and no password.",
            metavar="FILE",
        ),
    ] = None
    house_key: Annotated[
        Path | None,
        Option(
            "--house-key",
            "DEALER_HOUSE_KEY_FILE",
            "File of the house's key. If not given, it is next to the SQLite file.",
            metavar="FILE",
        ),
    ] = None
    marks: Annotated[
        Path | None,
        Option(
            "--marks",
            "DEALER_MARKS",
            "Folder for the high-water marks, by which the server detects a database restored "
            "from an older backup. If not given, it is next to the key.",
            metavar="FOLDER",
        ),
    ] = None
    host: Annotated[
        str,
        Option(
            "--host",
            "DEALER_HOST",
            "Address to listen on; 0.0.0.0 for every network.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Option(
            "--port",
            "DEALER_PORT",
            "Port for players; 0 chooses a free one.",
            metavar="PORT",
            check=check_port,
        ),
    ] = 8080
    ops_host: Annotated[
        str,
        Option(
            "--ops-host",
            "DEALER_OPS_HOST",
            "Address that the operator's port listens on. If a load balancer or Prometheus on "
            "another machine needs it, change it and protect the port by a firewall.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
    ops_port: Annotated[
        int,
        Option(
            "--ops-port",
            "DEALER_OPS_PORT",
            "The operator's port: /healthz, /readyz, /metrics; 0 chooses a free one.",
            metavar="PORT",
            check=check_port,
        ),
    ] = 9090
    service_host: Annotated[
        str,
        Option(
            "--service-host",
            "DEALER_SERVICE_HOST",
            "Address that the services' port listens on, if there is one.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1"
    service_port: Annotated[
        int | None,
        Option(
            "--service-port",
            "DEALER_SERVICE_PORT",
            "A port for connections with a service key (`dealer key`) only, besides the players' "
            "port, which accepts them too; 0 chooses a free one.",
            metavar="PORT",
            check=check_port,
        ),
    ] = None
    open_tables: Annotated[
        str,
        Option(
            "--open-tables",
            "DEALER_OPEN_TABLES",
            "Who opens tables: anyone, or only services, which have a key.",
            choices=WHO,
        ),
    ] = "anyone"
    lobby: Annotated[
        str,
        Option(
            "--lobby",
            "DEALER_LOBBY",
            "Who gets the list of open public tables: anyone, or only services, of their own.",
            choices=WHO,
        ),
    ] = "anyone"
    house: Annotated[
        str,
        Option(
            "--house",
            "DEALER_HOUSE",
            "The house's name in the signatures of new tables; existing tables keep theirs.",
            metavar="NAME",
            check=check_house,
        ),
    ] = "localhost"
    origins: Annotated[
        tuple[str, ...],
        Option(
            "--origin",
            "DEALER_ORIGIN",
            "A web origin whose pages may connect besides the server's own pages; * for all. May "
            "be given several times; in the variable separated by spaces.",
            metavar="ORIGIN",
        ),
    ] = ()
    frame_ancestors: Annotated[
        tuple[str, ...],
        Option(
            "--frame-ancestor",
            "DEALER_FRAME_ANCESTORS",
            "An origin, like https://game.example.org, whose pages may show the pages of this "
            "server in a frame; none if not given. May be given several times; in the variable "
            "separated by spaces.",
            metavar="ORIGIN",
            check=check_frame_ancestors,
        ),
    ] = ()
    title: Annotated[
        str | None,
        Option(
            "--title",
            "DEALER_TITLE",
            "Your name for this server, which its pages show.",
            metavar="TEXT",
            check=check_title,
        ),
    ] = None
    logo: Annotated[
        Path | None,
        Option(
            "--logo",
            "DEALER_LOGO",
            "An image (.svg, .png, .jpg or .webp, at most 128 KiB) that the pages show.",
            metavar="FILE",
            check=check_logo,
        ),
    ] = None
    colours: Annotated[
        tuple[str, ...],
        Option(
            "--colour",
            "DEALER_COLOURS",
            "A colour of the pages, like felt=#1d4b3a: accent (buttons), accent-ink (text on them)"
            " or felt (the table). Text must have a contrast of 4.5:1. May be given several times;"
            " in the variable separated by spaces.",
            metavar="NAME=#RRGGBB",
            check=check_colours,
        ),
    ] = ()
    packs: Annotated[
        Path | None,
        Option(
            "--packs",
            "DEALER_PACKS",
            "A folder with your packs of cards (.json, .csv), besides those of this version.",
            metavar="FOLDER",
        ),
    ] = None
    games: Annotated[
        Path | None,
        Option(
            "--games",
            "DEALER_GAMES",
            "A folder with your presets of games (.json), besides those of this version.",
            metavar="FOLDER",
        ),
    ] = None
    host_names: Annotated[
        tuple[str, ...],
        Option(
            "--host-name",
            "DEALER_HOST_NAME",
            "A name that browsers reach the server by, like cards.example.org, besides localhost,"
            " IP addresses and the names in --host, --house and --origin; *.example.org for all "
            "names below example.org, * for any. May be given several times; in the variable "
            "separated by spaces.",
            metavar="NAME",
            check=check_host_names,
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Option(
            "--trusted-proxy",
            "DEALER_TRUSTED_PROXY",
            "Address or network of a proxy, like 10.0.0.0/8, whose X-Forwarded-For is trusted. "
            "May be given several times; in the variable separated by spaces.",
            metavar="CIDR",
            check=check_networks,
        ),
    ] = ()
    issuer: Annotated[
        str | None,
        Option(
            "--issuer",
            "DEALER_ISSUER",
            "URL of the issuer whose JWTs give its users seats, exactly as in their `iss`; needs "
            "--audience.",
            metavar="URL",
        ),
    ] = None
    audience: Annotated[
        str | None,
        Option(
            "--audience",
            "DEALER_AUDIENCE",
            "The name of this server in the `aud` of these JWTs.",
            metavar="NAME",
        ),
    ] = None
    jwks: Annotated[
        str | None,
        Option(
            "--jwks",
            "DEALER_JWKS",
            "URL or file of the issuer's keys (JWKS). If not given, the issuer's "
            "/.well-known/openid-configuration says where they are.",
            metavar="URL",
        ),
    ] = None
    archive: Annotated[
        Path | None,
        Option(
            "--archive",
            "DEALER_ARCHIVE",
            "The folder of `dealer archive`, from which bundles of archived tables are served.",
            metavar="FOLDER",
        ),
    ] = None
    synchronous: Annotated[
        str,
        Option(
            "--synchronous",
            "DEALER_SYNCHRONOUS",
            "FULL, EXTRA or NORMAL. NORMAL is faster and can lose acknowledged events in a power "
            "cut.",
            choices=SYNCHRONOUS,
        ),
    ] = "FULL"
    commit: Annotated[
        str,
        Option(
            "--commit",
            "DEALER_COMMIT",
            "Where appends to an SQLite file are committed: auto, loop (on the event loop's thread,"
            " which uses less CPU, and where a slow disk stalls all players) or thread (in a "
            "thread of its own). auto measures the disk.",
            choices=COMMIT,
        ),
    ] = "auto"
    memory: Annotated[
        int,
        Option(
            "--memory",
            "DEALER_MEMORY",
            "MiB for tables in memory. Above it idle tables are unloaded; if all are in use, no "
            "table is loaded or opened.",
            metavar="MIB",
            check=at_least(1),
        ),
    ] = 64
    tables: Annotated[
        int,
        Option(
            "--tables",
            "DEALER_TABLES",
            "Maximum number of idle tables that stay in memory, however small they are.",
            metavar="COUNT",
            check=at_least(1),
        ),
    ] = 10_000
    lobby_per_address: Annotated[
        int,
        Option(
            "--lobby-per-address",
            "DEALER_LOBBY_PER_ADDRESS",
            "Maximum number of open tables of one address (IPv6: /64) that the lobby lists.",
            metavar="COUNT",
            check=at_least(1),
        ),
    ] = 5
    close_empty: Annotated[
        str,
        Option(
            "--close-empty",
            "DEALER_CLOSE_EMPTY",
            "Age, like 24h, after which a table without events is closed if no seat is taken and "
            "no round is open; 0 means never.",
            metavar="AGE",
            check=check_age,
        ),
    ] = "24h"
    close_idle: Annotated[
        str,
        Option(
            "--close-idle",
            "DEALER_CLOSE_IDLE",
            "Age, like 90d, after which a table without events is closed even if seats are taken;"
            " 0 means never.",
            metavar="AGE",
            check=check_age,
        ),
    ] = "0"
    decks: Annotated[
        str,
        Option(
            "--decks",
            "DEALER_DECKS",
            "on or off: whether there are decks over simple REST, at /api/deck/new/.",
            choices=SWITCH,
        ),
    ] = "on"
    close_decks: Annotated[
        str,
        Option(
            "--close-decks",
            "DEALER_CLOSE_DECKS",
            "Age, like 14d, after which a deck of the simple REST interface without events is "
            "closed; 0 means never.",
            metavar="AGE",
            check=check_age,
        ),
    ] = "14d"
    host_absent: Annotated[
        str,
        Option(
            "--host-absent",
            "DEALER_HOST_ABSENT",
            "Age, like 10m, of a host's absence after which the player who has been seated longest"
            " becomes host, except at tables of services; 0 means never.",
            metavar="AGE",
            check=check_age,
        ),
    ] = "10m"
    webhook_give_up: Annotated[
        str,
        Option(
            "--webhook-give-up",
            "DEALER_WEBHOOK_GIVE_UP",
            "Age, like 3d, of a webhook's failures after which it is switched off; 0 means never.",
            metavar="AGE",
            check=check_age,
        ),
    ] = "3d"
    disk_floor: Annotated[
        int,
        Option(
            "--disk-floor",
            "DEALER_DISK_FLOOR",
            "MiB of free disk below which no tables and rounds open, on SQLite; 0 means never.",
            metavar="MIB",
            check=at_least(0),
        ),
    ] = 256
    queue: Annotated[
        int,
        Option(
            "--queue",
            "DEALER_QUEUE",
            "Maximum number of appends that wait for their commit.",
            metavar="COUNT",
            check=at_least(1),
        ),
    ] = 8192
    batch: Annotated[
        int,
        Option(
            "--batch",
            "DEALER_BATCH",
            "Maximum number of appends in one commit.",
            metavar="COUNT",
            check=at_least(1),
        ),
    ] = 512
    busy: Annotated[
        float,
        Option(
            "--busy",
            "DEALER_BUSY",
            "Seconds to wait while another program locks the database.",
            metavar="SECONDS",
        ),
    ] = 10.0
    log_format: Annotated[
        str,
        Option(
            "--log-format",
            "DEALER_LOG_FORMAT",
            "console for readable lines, or json for one object per line.",
            choices=LOG_FORMATS,
        ),
    ] = "console"
    log_level: Annotated[
        str,
        Option(
            "--log-level",
            "DEALER_LOG_LEVEL",
            "DEBUG, INFO, WARNING or ERROR: the lowest level that is logged to standard error.",
            choices=LOG_LEVELS,
        ),
    ] = "INFO"
    otlp_traces: Annotated[
        str | None,
        Option(
            "--otlp-traces",
            "DEALER_OTLP_TRACES",
            "URL of an OpenTelemetry collector, like http://localhost:4318/v1/traces, that spans "
            "of requests, commits and projections are sent to; needs `pip install "
            "dealer-server[otel]`.",
            metavar="URL",
        ),
    ] = None
    insecure_test_decks: Annotated[
        bool,
        Option(
            "--insecure-test-decks",
            "DEALER_INSECURE_TEST_DECKS",
            "For tests only: tables with the rule insecure_test_deck get the cards that it names. "
            "Every page and log line says so, and no verifier accepts such a table as proof.",
        ),
    ] = False
    limits: Limits = field(default_factory=default_limits)

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            setting.check(getattr(self, setting.name))
        check_games(self.packs, self.games)
        check_issuer(self.issuer, self.audience, self.jwks)


def _declared() -> tuple[Setting, ...]:
    hints = get_type_hints(Settings, localns={"Limits": object}, include_extras=True)
    return tuple(
        Setting(name, get_args(hint)[0], getattr(Settings, name), get_args(hint)[1])
        for name, hint in hints.items()
        if name != "limits"
    )


SETTINGS = _declared()
"""All settings but the limits, which `LIMITS` names."""

DATABASE = Settings.database
