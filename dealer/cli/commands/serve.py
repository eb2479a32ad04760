"""`dealer serve`: opens the database and the ports, and runs until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from socket import AF_INET, SOCK_DGRAM, socket
from typing import TYPE_CHECKING, Any

import click

from dealer.cli import options, process
from dealer.cli.logs import configure, log_unhandled
from dealer.cli.manifest import program_note
from dealer.cli.output import ClosedPipe, echo, program
from dealer.config.checks import age_ms, masked, palette, read_logo
from dealer.config.settings import Settings
from dealer.packs.catalogue import read_folders
from dealer.version import running_version

if TYPE_CHECKING:
    from dealer.gateway import Gateway
    from dealer.gateway.identity import Issuer
    from dealer.gateway.ops import OperatorPort
    from dealer.gateway.pages.appearance import Appearance

log = logging.getLogger(__name__)

MIB = 2**20

_EVERY_ADDRESS = ("", "0.0.0.0", "::")
ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation (RFC 5737), to which the system has the route of any other."""


@options.command(
    help="""Start the server: tables, rounds and shuffles over WebSocket, and pages for browsers.

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
)
@options.takes_settings
@click.pass_context
def serve(context: click.Context, /, **given: Any) -> None:
    settings = options.build_settings(given)
    with options.usage_errors():
        options.validate_paths(settings)
    configure(
        format=settings.log_format,
        level=settings.log_level,
        insecure_test_decks=settings.insecure_test_decks,
    )
    process.raise_file_limit()
    sys.setswitchinterval(process.SWITCH_INTERVAL)
    process.run(
        _serve(settings, fixed_ops_port=options.source_of(context, "ops_port") != "default")
    )


async def _serve(settings: Settings, *, fixed_ops_port: bool) -> None:
    from dealer.gateway import serve as open_gateway
    from dealer.gateway.observe.tracing import tracing
    from dealer.service.build import open_service
    from dealer.service.service import ServiceOptions

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
    process.stop_by_signal(stop)
    issuer = _issuer(settings)
    await _require_ports(settings, ops=fixed_ops_port)
    names = (*settings.host_names, settings.house)
    async with (
        _operator_port(settings, names, any_port=not fixed_ops_port) as operator,
        open_service(
            settings.database,
            ServiceOptions(
                house=settings.house,
                memory=settings.memory * MIB,
                tables=settings.tables,
                per_network=settings.lobby_per_address,
                webhook_give_up_ms=age_ms("--webhook-give-up", settings.webhook_give_up),
                insecure_test_decks=settings.insecure_test_decks,
                program=program_note(),
                archive=settings.archive,
            ),
            house_key=settings.house_key,
            marks=settings.marks,
            close_empty_ms=age_ms("--close-empty", settings.close_empty),
            close_idle_ms=age_ms("--close-idle", settings.close_idle),
            close_decks_ms=age_ms("--close-decks", settings.close_decks),
            disk_floor=settings.disk_floor * MIB,
            synchronous=settings.synchronous,
            commit=settings.commit,
            queue=settings.queue,
            batch=settings.batch,
            busy_seconds=settings.busy,
            progress=operator.progress,
        ) as service,
        open_gateway(
            service,
            host=settings.host,
            port=settings.port,
            ops_host=settings.ops_host,
            ops_port=settings.ops_port,
            operator=operator,
            service_host=settings.service_host,
            service_port=settings.service_port,
            open_tables=settings.open_tables,
            lobby=settings.lobby,
            finished=settings.finished,
            limits=settings.limits,
            origins=settings.origins or None,
            trusted_proxies=settings.trusted_proxies,
            host_names=names,
            frame_ancestors=settings.frame_ancestors,
            appearance=_appearance(settings),
            catalogue=read_folders(settings.packs, settings.games),
            issuer=issuer,
            host_absent_seconds=age_ms("--host-absent", settings.host_absent) / 1000,
            decks=settings.decks == "on",
            path=settings.path,
        ) as gateway,
    ):
        collecting = asyncio.create_task(process.FullCollections().run())
        if await service.log.owns_tables():
            log.warning("the node owns its tables")
        with tracing(settings.otlp_traces, service, gateway.metrics):
            _print_address(settings, gateway)
            await stop.wait()
        collecting.cancel()
        with suppress(ClosedPipe):  # a server stops in order also without a reader of its output
            echo("The server stops; tables and seats are kept.")
    log.info("stop")
    # Raises if the database file was deleted while the server ran: its events end with the process.
    service.log.check()


@asynccontextmanager
async def _operator_port(
    settings: Settings, names: Sequence[str], *, any_port: bool
) -> AsyncIterator[OperatorPort]:
    """The operator's port: it answers while the rest of the server starts."""
    from dealer.gateway.ops import OperatorPort, operator_hosts

    operator = OperatorPort(operator_hosts(names, settings.ops_host))
    await operator.open(settings.ops_host, settings.ops_port, settings.limits, any_port=any_port)
    with closing(operator):
        yield operator


async def _require_ports(settings: Settings, *, ops: bool) -> None:
    """Raise ConfigurationError for ports that cannot be opened; the operator's with `ops`."""
    from dealer.gateway.net.listener import require_free

    ports = [(settings.host, settings.port, "--port")]
    if settings.service_port is not None:
        ports.append((settings.service_host, settings.service_port, "--service-port"))
    if ops:
        ports.append((settings.ops_host, settings.ops_port, "--ops-port"))
    await require_free(ports)


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
    if not settings.issuer or not settings.audience:
        return None
    from dealer.gateway.identity import Issuer

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
