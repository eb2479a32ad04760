"""The house opens here, says at which address, and closes in order when it is told to."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.logs import configure, mistaken
from dealer.cli.options import Database, HouseKey, Marks, asked_rightly, option, seconds, whole
from dealer.cli.output import program, say
from dealer.cli.version import version
from dealer.config import (
    DATABASE,
    LIMITS,
    LOG_FORMATS,
    LOG_LEVELS,
    PASSWORD_FILE_VARIABLE,
    SETTINGS,
    SYNCHRONOUS,
    Settings,
    age_ms,
    masked,
    read_limits,
)
from dealer.errors import SetupError

if TYPE_CHECKING:
    from dealer.gateway import Gateway

log = logging.getLogger(__name__)

MIB = 2**20
EVERYWHERE = ("", "0.0.0.0", "::")
_OTHERWISE = {
    "password_file",
    "origins",
    "host_names",
    "trusted_proxies",
    "synchronous",
    "log_format",
    "log_level",
}

LIMITS_HELP = "Limits, each also a variable like DEALER_LIMIT_RATE:\n\n" + "\n".join(
    f"- `{name}`: {what}" for name, what in LIMITS.items()
)


def serve(
    database: Database = DATABASE,
    house_key: HouseKey = None,
    marks: Marks = None,
    host: Annotated[str, option("host")] = Settings.host,
    port: Annotated[int, option("port", parser=whole, metavar="PORT")] = Settings.port,
    ops_host: Annotated[str, option("ops_host")] = Settings.ops_host,
    ops_port: Annotated[int, option("ops_port", parser=whole, metavar="PORT")] = Settings.ops_port,
    house: Annotated[str, option("house", metavar="NAME")] = Settings.house,
    origins: Annotated[
        list[str] | None, option("origins", metavar="ORIGIN", show_default=False)
    ] = None,
    host_names: Annotated[
        list[str] | None, option("host_names", metavar="NAME", show_default=False)
    ] = None,
    trusted_proxies: Annotated[
        list[str] | None, option("trusted_proxies", metavar="CIDR", show_default=False)
    ] = None,
    archive: Annotated[Path | None, option("archive", metavar="FOLDER", show_default=False)] = None,
    synchronous: Annotated[
        str, option("synchronous", metavar="|".join(SYNCHRONOUS))
    ] = Settings.synchronous,
    memory: Annotated[int, option("memory", parser=whole, metavar="MIB")] = Settings.memory,
    tables: Annotated[int, option("tables", parser=whole, metavar="COUNT")] = Settings.tables,
    lobby_per_address: Annotated[
        int, option("lobby_per_address", parser=whole, metavar="COUNT")
    ] = Settings.lobby_per_address,
    close_empty: Annotated[str, option("close_empty", metavar="AGE")] = Settings.close_empty,
    close_idle: Annotated[str, option("close_idle", metavar="AGE")] = Settings.close_idle,
    disk_floor: Annotated[
        int, option("disk_floor", parser=whole, metavar="MIB")
    ] = Settings.disk_floor,
    queue: Annotated[int, option("queue", parser=whole, metavar="COUNT")] = Settings.queue,
    batch: Annotated[int, option("batch", parser=whole, metavar="COUNT")] = Settings.batch,
    busy: Annotated[float, option("busy", metavar="SECONDS", parser=seconds)] = Settings.busy,
    log_format: Annotated[
        str, option("log_format", metavar="|".join(LOG_FORMATS))
    ] = Settings.log_format,
    log_level: Annotated[
        str, option("log_level", metavar="|".join(LOG_LEVELS))
    ] = Settings.log_level,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A limit, like rate=20, of those below. May be given several times.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open a house: tables, rounds and shuffles over WebSocket, and a page for the browser.

    It needs no configuration. The log is a file in the current folder, made and kept up to date
    by itself; beside it hangs the house's key, dealer.db.key: back both up together, and show the
    key to nobody. While a house is open, a plain copy of the file lacks the newest events, or all:
    copy it with sqlite3's .backup. Ctrl-C or SIGTERM closes in order; nothing that was answered is
    lost.

    Several houses can share a PostgreSQL database and its tables: each is given the same database,
    made ready once by `dealer migrate`, and the same key.

    ```
    dealer serve
    dealer serve --host 0.0.0.0 --port 80 --house cards.example.org
    dealer serve --database sqlite:////var/lib/dealer/dealer.db --limit rate=20
    dealer serve --database postgresql://dealer@db/dealer --house-key /run/secrets/house.key
    ```
    """
    settings = settled(locals())
    with asked_rightly():
        check_places(settings)
    configure(format=settings.log_format, level=settings.log_level)
    raise_file_limit()
    run(_serve(settings))


def settled(told: dict[str, Any]) -> Settings:
    """The settings that a command was told, by the names of its parameters; exits with 2 on bad."""
    with asked_rightly():
        return Settings(
            **{one.name: told[one.name] for one in SETTINGS if one.name not in _OTHERWISE},
            password_file=_path(os.environ.get(PASSWORD_FILE_VARIABLE)),
            origins=tuple(told["origins"] or ()),
            host_names=tuple(told["host_names"] or ()),
            trusted_proxies=tuple(told["trusted_proxies"] or ()),
            synchronous=told["synchronous"].upper(),
            log_format=told["log_format"].lower(),
            log_level=told["log_level"].upper(),
            limits=read_limits(told["limit"] or (), os.environ),
        )


def settle_garbage_collector() -> None:
    """Make full garbage collections short and rare: while one runs, no table gets an answer.

    What there is by now, modules, classes and code, stays until the end: going over it took more
    than 0.1 s each time, and clients brought that about every few seconds by requests that
    allocate. Of what comes later three times as much as usual may gather.
    """
    gc.collect()
    gc.freeze()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 3 * old)


def raise_file_limit() -> None:
    """Let this process open as many files as its hard limit says.

    Every connection takes one, and the log needs some more: with the usual soft limit of 1,024 one
    address could use them up. A system without such limits is left as it is.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None


def run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop where it installs, on the standard loop elsewhere."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop

        factory = new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


async def _serve(settings: Settings) -> None:
    from dealer.gateway import serve as open_gateway
    from dealer.gateway.server import require_free
    from dealer.service.opening import open_service

    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(mistaken)
    about = {"version": version(), "database": masked(settings.database), "pid": os.getpid()}
    log.info("start", extra={"told": about})
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await require_free((settings.host, settings.port), (settings.ops_host, settings.ops_port))
    async with (
        open_service(
            settings.database,
            house=settings.house,
            house_key=settings.house_key,
            memory=settings.memory * MIB,
            marks=settings.marks,
            tables=settings.tables,
            per_network=settings.lobby_per_address,
            close_empty_ms=age_ms(settings.close_empty, of="--close-empty"),
            close_idle_ms=age_ms(settings.close_idle, of="--close-idle"),
            disk_floor=settings.disk_floor * MIB,
            synchronous=settings.synchronous,
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
            ops_port=settings.ops_port,
            limits=settings.limits,
            origins=settings.origins or None,
            trusted_proxies=settings.trusted_proxies,
            host_names=(*settings.host_names, settings.house),
        ) as gateway,
    ):
        settle_garbage_collector()
        _greet(settings, gateway)
        await told.wait()
        say("The house closes; tables and seats are kept.")
    log.info("stop")
    # It stayed up for as long as it was told to: the deleted file lives as long as the process.
    service.log.check()


def _greet(settings: Settings, gateway: Gateway) -> None:
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    address = f"http://[{host}]" if ":" in host else f"http://{host}"
    say(f"The house is open at {address}:{gateway.port}/")
    say(f"To see it played from a terminal: {program()} demo --url {address}:{gateway.port}/")
    sys.stdout.flush()


def check_places(settings: Settings) -> None:
    """Raise SetupError if the settings name a database, a key or a folder that cannot be."""
    from dealer.eventlog import key_file
    from dealer.eventlog.server import check_address

    check_address(settings.database)
    key_file(settings.database, settings.house_key)
    for folder in (settings.archive, settings.marks):
        if folder is not None and not folder.is_dir():
            raise SetupError(f"There is no folder {folder}; make it first.")
