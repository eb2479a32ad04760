"""`dealer demo`: four clients play a game, then its bundle and its read models are checked."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import HouseKey, usage_errors
from dealer.cli.output import echo, program
from dealer.config import DATABASE_VARIABLE

if TYPE_CHECKING:
    from dealer.client import RemoteTable
    from dealer.service import Service


def demo(
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of a running server to play at, instead of starting one.",
            show_default=False,
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the demo's own server stores its log, like sqlite:///demo.db; a temporary "
            f"folder if not given ({DATABASE_VARIABLE} is ignored).",
            show_default=False,
        ),
    ] = None,
    house_key: HouseKey = None,
    pace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Seconds between two moves.")
    ] = 0.0,
) -> None:
    """Let four players play a whole game over real sockets, then check it.

    A server starts on a free port, unless --url names a running one. The game has two rounds:
    shuffles with random bytes from all players, a deal, draws from the top and from random places,
    discards, a reshuffle, and a player whose connection is lost and who resumes. Then the table
    closes, and its bundle is verified. Without --url, the read models are also rebuilt from the log
    and compared. The exit code is 0 if every check passes.

    ```
    dealer demo
    dealer demo --pace 1
    dealer demo --database sqlite:///demo.db
    ```
    """
    from dealer.cli.commands.serve import run

    if url is not None and database is not None:
        raise typer.BadParameter("Give --url or --database, not both.")
    if not run(_demo(url, database, house_key, pace)):
        raise typer.Exit(1)


async def _demo(url: str | None, database: str | None, house_key: Path | None, pace: float) -> bool:
    """Whether every check has passed."""
    from dealer.cli.commands.bundle import web_address
    from dealer.eventlog import key_file
    from dealer.eventlog.address import sqlite_address
    from dealer.eventlog.backends import check_address
    from dealer.gateway import serve as open_gateway
    from dealer.service.build import open_service

    if url is not None:
        table, fair = await _play_and_check(web_address(url), pace)
        echo(f"The table is at {web_address(url)}/tables/{table}")
        return fair
    async with AsyncExitStack() as stack:
        shown_database = None
        if database is not None:
            with usage_errors():
                shown_database = check_address(database)
                key_file(database, house_key)
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="dealer-"))
            database = sqlite_address(Path(folder) / "dealer.db")
        service = await stack.enter_async_context(open_service(database, house_key=house_key))
        gateway = await stack.enter_async_context(open_gateway(service, port=0))
        address = f"http://127.0.0.1:{gateway.port}"
        echo(f"The server is running at {address}/ until the demo ends.")
        table, fair = await _play_and_check(address, pace)
        same = await _rebuild(service)
    if shown_database is not None:
        echo(
            f"To see each swap: {program()} audit {table} --database {shlex.quote(shown_database)}"
        )
    return fair and same


async def _play_and_check(address: str, pace: float) -> tuple[str, bool]:
    """Play a game on the server at `address`; the id of its table, and whether it verifies."""
    from dealer.cli.commands.bundle import from_house, socket_address
    from dealer.cli.commands.verify import examine, say_verdicts
    from dealer.cli.demo_game import play

    seen: list[RemoteTable] = []
    table = await play(socket_address(address), echo, pace=pace, on_end=seen.append)
    echo()
    echo("Was it fair? Checked with the table's bundle and the checkpoints that the clients saved:")
    lines = await asyncio.to_thread(from_house, address, table)
    key = seen[0].key
    report = examine(
        lines,
        key=None if key is None else key.hex(),
        saved=[note for client in seen for note in client.checkpoints],
    )
    say_verdicts(report)
    return table, report.ok


async def _rebuild(service: Service) -> bool:
    from dealer.projector.rebuild import Rebuild
    from dealer.projector.runner import Projector

    # Rows that the read models lag behind with would be missing from the comparison.
    await service.log.run_when_idle(Projector().slice)
    work = Rebuild()
    await service.log.run_when_idle(work.slice)
    same = not work.different and not work.stopped
    echo(
        "passed: The SQL tables agree with the log (rebuild): "
        f"rebuilt from {work.done} events, they are the same as before."
        if same
        else "failed: The SQL tables agree with the log (rebuild): "
        f"{work.different} rows differ from the log."
    )
    return same
