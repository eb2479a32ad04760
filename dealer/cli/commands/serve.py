"""Run a server: `dealer serve`, `dealer config` and `dealer packs check`.

While a full garbage collection runs, no request is answered. Python starts one whenever the number
of surviving objects has grown by a quarter, and it then visits every object of the process: 65 to
100 ms with the tables that one client may open, several times a minute. Instead, a task of the
server collects often, about 5 ms each time, and *freezes* the survivors: later collections skip
them, while those that nothing refers to any more are freed as always. Only reference cycles that
are dropped after they were frozen wait for the next complete collection, which comes when the
number of frozen objects has doubled.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from dealer.cli.commands.verify import program_note
from dealer.cli.logs import configure, log_unhandled
from dealer.cli.options import (
    AsJson,
    Commands,
    Packs,
    argument,
    build_settings,
    takes_settings,
    usage_errors,
)
from dealer.cli.output import ClosedPipe, amount, echo, program, safe_text, say_json
from dealer.config import LIMIT_VARIABLE, SETTINGS, Settings, age_ms, masked, palette, read_logo
from dealer.errors import ConfigurationError
from dealer.packs.catalogue import read_file, read_folders
from dealer.version import running_version

if TYPE_CHECKING:
    from dealer.gateway import Gateway
    from dealer.gateway.identity import Issuer
    from dealer.gateway.pages.appearance import Appearance

T = TypeVar("T")

log = logging.getLogger(__name__)

MIB = 2**20

SWITCH_INTERVAL = 0.0005
"""Seconds for which a thread may keep the interpreter while another waits. With Python's 5 ms, each
system call of the event loop is followed by such a wait while the writer thread computes."""

_EVERY_ADDRESS = ("", "0.0.0.0", "::")
_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment"}

PERIOD = 60.0
"""Seconds between two collections of a server in use, and between two counts of what is frozen: a
count visits every frozen object, about 20 ms."""

MIDDLE_COLLECTIONS = 10
"""Collections of the middle generation, each after at most 7,000 more allocations than releases,
after which the next full one is not delayed any longer."""

CHECK = 0.2
"""Seconds between two checks of that number."""

NEVER = 2**30

USUAL = gc.get_threshold()

STARTING = 50_000
"""Allocations between two young collections of a command, instead of Python's 700. Modules stay
until the end, so while they are imported a collection finds next to nothing: with Python's number
they take a tenth of the start of a server. Other commands keep it until they end."""


app = Commands(no_args_is_help=True, help="Check packs of cards and game files.")

ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737), to which the system has the route of any other."""


@takes_settings
def serve(*, context: typer.Context, **given: Any) -> None:
    """Start the server: tables, rounds and shuffles over WebSocket, and pages for browsers.

    No configuration is needed. The log is an SQLite file in the current folder, created and
    migrated automatically. The house key is next to it, in dealer.db.key: back up both, and keep
    the key secret. While the server runs, a plain copy of the file may lack events: copy it with
    sqlite3's .backup. Ctrl-C or SIGTERM stops the server; nothing that was acknowledged is lost.

    Several servers can share one PostgreSQL database and its tables: give each the same database,
    prepared once by `dealer migrate`, and the same key.

    ```
    dealer serve
    dealer serve --host 0.0.0.0 --port 80 --house cards.example.org
    dealer serve --database sqlite:////var/lib/dealer/dealer.db --limit rate=20
    dealer serve --database postgresql://dealer@db/dealer --house-key /run/secrets/house.key
    ```
    """
    settings = build_settings(given)
    with usage_errors():
        validate_paths(settings)
    configure(
        format=settings.log_format,
        level=settings.log_level,
        insecure_test_decks=settings.insecure_test_decks,
    )
    raise_file_limit()
    sys.setswitchinterval(SWITCH_INTERVAL)
    run(_serve(settings, fixed_ops_port=_source(context, "ops_port") != "default"))


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, where the system has such limits.

    Each connection takes one and the log some more: one client address could use up the usual
    soft limit of 1,024.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop if it is installed, otherwise on the standard loop."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop

        factory = new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


async def _serve(settings: Settings, *, fixed_ops_port: bool) -> None:
    from dealer.gateway import serve as open_gateway
    from dealer.gateway.observe.tracing import tracing
    from dealer.service.build import open_service

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_unhandled)
    fields = {
        "version": running_version(),
        "database": masked(settings.database),
        "pid": os.getpid(),
    }
    log.info("start", extra={"fields": fields})
    if settings.insecure_test_decks:
        log.warning("insecure test decks")
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    issuer = _issuer(settings)
    ops_port = await _free_ports(settings, fixed_ops_port=fixed_ops_port)
    async with (
        open_service(
            settings.database,
            house=settings.house,
            house_key=settings.house_key,
            memory=settings.memory * MIB,
            marks=settings.marks,
            tables=settings.tables,
            per_network=settings.lobby_per_address,
            close_empty_ms=age_ms("--close-empty", settings.close_empty),
            close_idle_ms=age_ms("--close-idle", settings.close_idle),
            close_decks_ms=age_ms("--close-decks", settings.close_decks),
            disk_floor=settings.disk_floor * MIB,
            webhook_give_up_ms=age_ms("--webhook-give-up", settings.webhook_give_up),
            insecure_test_decks=settings.insecure_test_decks,
            program=program_note(),
            synchronous=settings.synchronous,
            commit=settings.commit,
            queue=settings.queue,
            batch=settings.batch,
            busy_seconds=settings.busy,
            archive=settings.archive,
        ) as service,
        open_gateway(
            service,
            host=settings.host,
            port=settings.port,
            ops_host=settings.ops_host,
            ops_port=ops_port,
            service_host=settings.service_host,
            service_port=settings.service_port,
            open_tables=settings.open_tables,
            lobby=settings.lobby,
            finished=settings.finished,
            limits=settings.limits,
            origins=settings.origins or None,
            trusted_proxies=settings.trusted_proxies,
            host_names=(*settings.host_names, settings.house),
            frame_ancestors=settings.frame_ancestors,
            appearance=_appearance(settings),
            catalogue=read_folders(settings.packs, settings.games),
            issuer=issuer,
            host_absent_seconds=age_ms("--host-absent", settings.host_absent) / 1000,
            decks=settings.decks == "on",
            path=settings.path,
        ) as gateway,
    ):
        collecting = asyncio.create_task(FullCollections().run())
        with tracing(settings.otlp_traces, service, gateway.metrics):
            _print_address(settings, gateway)
            await stop.wait()
        collecting.cancel()
        with suppress(ClosedPipe):  # a server stops in order also without a reader of its output
            echo("The server stops; tables and seats are kept.")
    log.info("stop")
    # Raises if the database file was deleted while the server ran: its events end with the process.
    service.log.check()


async def _free_ports(settings: Settings, *, fixed_ops_port: bool) -> int:
    """The operator's port: the one of the settings, or 0 if that is taken and no flag asked for it.

    Raises ConfigurationError for another port that cannot be opened.
    """
    from dealer.gateway.net.listener import require_free

    await require_free(settings.host, settings.port, flag="--port")
    if settings.service_port is not None:
        await require_free(settings.service_host, settings.service_port, flag="--service-port")
    try:
        await require_free(settings.ops_host, settings.ops_port, flag="--ops-port")
    except ConfigurationError as error:
        if fixed_ops_port:
            raise
        log.warning("operator's port in use", extra={"fields": {"says": str(error)}})
        return 0
    return settings.ops_port


def _appearance(settings: Settings) -> Appearance:
    from dealer.gateway.pages.appearance import Appearance

    logo = settings.logo
    return Appearance(
        title=settings.title,
        logo=None if logo is None else (logo.suffix.lower(), read_logo("--logo", logo)),
        properties=palette("--colour", settings.colours),
        insecure_test_decks=settings.insecure_test_decks,
    )


def _issuer(settings: Settings) -> Issuer | None:
    """The issuer of JWTs, whose keys are read in the background."""
    from dealer.gateway.identity import Issuer

    if not settings.issuer or not settings.audience:
        return None
    clock = asyncio.get_running_loop().time
    issuer = Issuer(settings.issuer, audience=settings.audience, keys=settings.jwks, clock=clock)
    issuer.keys.start()
    return issuer


def network_address() -> str | None:
    """This computer's IPv4 address in its network; None if it is in none."""
    with socket(AF_INET, SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)  # chooses the address; nothing is sent
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


def _print_address(settings: Settings, gateway: Gateway) -> None:
    host = "127.0.0.1" if settings.host in _EVERY_ADDRESS else settings.host
    address = f"http://[{host}]" if ":" in host else f"http://{host}"
    if settings.insecure_test_decks:
        echo("Insecure test decks are on: the cards may be chosen. Use this server for tests only.")
    address = f"{address}:{gateway.port}{settings.path}"
    echo(f"The server is running at {address}")
    if settings.host in _EVERY_ADDRESS and (own := network_address()):
        echo(f"Players in the same network open http://{own}:{gateway.port}{settings.path}")
    echo(f"To see a game played from a terminal: {program()} demo --url {address}")
    sys.stdout.flush()


def validate_paths(settings: Settings) -> None:
    """Raise ConfigurationError if the database, key or folders that are named cannot be used."""
    from dealer.eventlog import key_file
    from dealer.eventlog.backends import check_address

    check_address(settings.database)
    key_file(settings.database, settings.house_key)
    for folder in (settings.archive, settings.marks):
        if folder is not None and not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}. Create it first.")


class SettingInForce(NamedTuple):
    """One setting in force; `source` is default, environment or flag."""

    flag: str
    variable: str
    value: str
    source: str


@takes_settings
def config(*, as_json: AsJson = False, context: typer.Context, **given: Any) -> None:
    """Print every setting that `dealer serve` would use with the same flags and environment.

    Each line has the flag, the environment variable, the value and its source. A password in the
    database address is hidden. With an SQLite file the last line is the version of the SQLite
    library. The exit code is 2 if `dealer serve` would refuse the settings.

    ```
    dealer config
    DEALER_PORT=80 dealer config --limit rate=20 --json
    ```
    """
    from dealer.eventlog.address import is_postgres
    from dealer.eventlog.sqlite.wal import library_version

    settings = build_settings(given)
    found = in_force(settings, given, context)
    widths = [max(len(row[place]) for row in found) for place in range(3)]
    for row in found:
        if as_json:
            say_json(row._asdict())
            continue
        cells = [safe_text(text).ljust(width) for text, width in zip(row, widths, strict=False)]
        echo("  ".join([*cells, row.source]).rstrip())
    if not is_postgres(settings.database):
        library = SettingInForce("", "SQLite", library_version(), "library")
        if as_json:
            say_json(library._asdict())
        else:
            echo(f"{library.variable} {library.value}")
    with usage_errors():
        validate_paths(settings)


def in_force(
    settings: Settings, given: dict[str, Any], context: typer.Context
) -> list[SettingInForce]:
    """Every setting of the running command, limits last."""
    found = []
    for setting in SETTINGS:
        source = _source(context, setting.name)
        if not setting.flag and os.environ.get(setting.variable):
            source = "environment"
        found.append(
            SettingInForce(
                setting.flag, setting.variable, _text(getattr(settings, setting.name)), source
            )
        )
    flags = {pair.partition("=")[0].replace("-", "_") for pair in given["limit"] or ()}
    for limit in fields(settings.limits):
        variable = f"{LIMIT_VARIABLE}{limit.name.upper()}"
        source = "environment" if os.environ.get(variable) else "default"
        source = "flag" if limit.name in flags else source
        value = _text(getattr(settings.limits, limit.name))
        found.append(SettingInForce(f"--limit {limit.name}=", variable, value, source))
    return found


def _source(context: typer.Context, name: str) -> str:
    """Where the value of a setting is from: flag, environment or default."""
    origin = context.get_parameter_source(name)
    return "default" if origin is None else _SOURCES.get(origin.name, "default")


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if value is None:
        return ""
    return masked(value) if isinstance(value, str) and "://" in value else str(value)


@app.callback()
def _packs() -> None: ...


@app.command()
def check(
    files: Annotated[list[Path], argument("FILE…", "Files of packs or games.")], packs: Packs = None
) -> None:
    """Check files of packs (.json, .csv) and games (.json), and print the codes of the cards.

    A wrong file is reported with the reason, and the exit code is 1.
    """
    wrong = False
    known = read_folders(packs, None).packs
    for file in files:
        notes: list[str] = []
        try:
            kind, read = read_file(file, packs=known, notes=notes)
        except ConfigurationError as error:
            echo(f"{file}: {error}")
            wrong = True
            continue
        echo(" ".join((f"{file}: {_summary(kind, read)}", *notes)))
    if wrong:
        raise typer.Exit(1)


def _summary(kind: str, read: dict[str, Any]) -> str:
    if kind == "game":
        players = read["players"]
        return (
            f"the game {read['game']}, {players['min']} to {players['max']} players, "
            f"{amount(read['cards'], 'card')}."
        )
    deck = read["deck"]
    return f"the pack {read['pack']}, {amount(len(deck), 'card')}, codes {deck[0]} to {deck[-1]}."


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect seldom within the block; `FullCollections` in it returns to the usual thresholds."""
    gc.set_threshold(STARTING, *USUAL[1:])
    try:
        yield
    finally:
        gc.set_threshold(*USUAL)


class FullCollections:
    """Takes over the full collections of this process; `frozen` counts the objects skipped."""

    def __init__(self) -> None:
        young, middle, _ = USUAL
        gc.set_threshold(young, middle, NEVER)
        self._complete()

    async def run(self) -> None:
        """Collect every `PERIOD` seconds, earlier after many allocations, until cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock() + PERIOD
        while True:
            await asyncio.sleep(CHECK)
            collections = gc.get_count()[2]
            if collections and clock() >= due:
                self.collect()
                due = clock() + PERIOD
            elif collections >= MIDDLE_COLLECTIONS:
                self.collect_new()

    def collect(self) -> None:
        """Collect what is new, or everything if what is skipped has doubled; freeze the rest."""
        if gc.get_freeze_count() >= 2 * self.frozen:
            self._complete()
        else:
            self.collect_new()

    def collect_new(self) -> None:
        """Collect what was allocated since the last collection, and freeze what survives."""
        gc.collect()
        gc.freeze()

    def _complete(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
