"""The house opens here, says at which address, and closes in order when it is told to."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import Database, asked_rightly
from dealer.cli.output import program, say
from dealer.config import LIMITS, Settings, read_limits

if TYPE_CHECKING:
    from dealer.gateway import Gateway

EVERYWHERE = ("", "0.0.0.0", "::")

LIMITS_HELP = "Limits, each also a variable like DEALER_LIMIT_RATE:\n\n" + "\n".join(
    f"- `{name}`: {what}" for name, what in LIMITS.items()
)


def serve(
    database: Database = Settings.database,
    host: Annotated[
        str,
        typer.Option(envvar="DEALER_HOST", help="Where to listen; 0.0.0.0 for every network."),
    ] = Settings.host,
    port: Annotated[
        int, typer.Option(envvar="DEALER_PORT", help="The players' port; 0 takes a free one.")
    ] = Settings.port,
    ops_port: Annotated[
        int,
        typer.Option(
            envvar="DEALER_OPS_PORT",
            help="The operator's port on this machine: /healthz, /readyz, /metrics.",
        ),
    ] = Settings.ops_port,
    house: Annotated[
        str,
        typer.Option(
            envvar="DEALER_HOUSE", metavar="NAME", help="The name under which logs are signed."
        ),
    ] = Settings.house,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DEALER_ORIGIN",
            metavar="ORIGIN",
            help="A web origin whose pages may connect besides the house's own; * for all. May be "
            "given several times.",
            show_default=False,
        ),
    ] = None,
    synchronous: Annotated[
        str,
        typer.Option(
            envvar="DEALER_SYNCHRONOUS",
            metavar="FULL|EXTRA|NORMAL",
            help="NORMAL is quicker and can lose acknowledged events at a power cut.",
        ),
    ] = Settings.synchronous,
    tables: Annotated[
        int,
        typer.Option(envvar="DEALER_TABLES", help="Idle tables that stay in memory at the most."),
    ] = Settings.tables,
    queue: Annotated[
        int, typer.Option(envvar="DEALER_QUEUE", help="Appends that may wait for their commit.")
    ] = Settings.queue,
    batch: Annotated[
        int, typer.Option(envvar="DEALER_BATCH", help="Appends in one commit at the most.")
    ] = Settings.batch,
    busy: Annotated[
        float,
        typer.Option(
            envvar="DEALER_BUSY",
            metavar="SECONDS",
            min=0,
            help="How long to wait while another program holds the database.",
        ),
    ] = Settings.busy,
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

    ```
    dealer serve
    dealer serve --host 0.0.0.0 --port 80 --house cards.example.org
    dealer serve --database sqlite:////var/lib/dealer/dealer.db --limit rate=20
    ```
    """
    with asked_rightly():
        settings = Settings(
            database=database,
            host=host,
            port=port,
            ops_port=ops_port,
            house=house,
            origins=tuple(origin or ()),
            synchronous=synchronous.upper(),
            tables=tables,
            queue=queue,
            batch=batch,
            busy=busy,
            limits=read_limits(limit or (), os.environ),
        )
        _check_address(database)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("alembic").setLevel(logging.WARNING)
    run(_serve(settings))


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
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await require_free((settings.host, settings.port), ("127.0.0.1", settings.ops_port))
    async with (
        open_service(
            settings.database,
            house=settings.house,
            tables=settings.tables,
            synchronous=settings.synchronous,
            queue=settings.queue,
            batch=settings.batch,
            busy_seconds=settings.busy,
        ) as service,
        open_gateway(
            service,
            host=settings.host,
            port=settings.port,
            ops_port=settings.ops_port,
            limits=settings.limits,
            origins=settings.origins or None,
        ) as gateway,
    ):
        _greet(settings, gateway)
        await told.wait()
        say("The house closes; tables and seats are kept.")


def _greet(settings: Settings, gateway: Gateway) -> None:
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    address = f"http://[{host}]" if ":" in host else f"http://{host}"
    say(f"The house is open at {address}:{gateway.port}/")
    say(f"To see it played from a terminal: {program()} demo --url {address}:{gateway.port}/")
    sys.stdout.flush()


def _check_address(database: str) -> None:
    from dealer.eventlog.sqlite import database_file

    database_file(database)
