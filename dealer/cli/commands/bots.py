"""`dealer bots`: simple players that take seats at a table."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.commands.serve import run
from dealer.cli.options import parse_seconds
from dealer.cli.output import echo
from dealer.errors import BadRequest

if TYPE_CHECKING:
    from dealer.bots import Bots

LOCAL_SERVER = "ws://localhost:8080/ws"

TableAddress = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's id, or a link to it, as its page shows under Invite.",
        show_default=False,
    ),
]
Server = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", help="The server's address, if TABLE is an id, not a link."
    ),
]


def bots(
    count: Annotated[
        int, typer.Argument(metavar="N", min=1, max=50, help="How many bots.", show_default=False)
    ],
    table: TableAddress,
    server: Server = LOCAL_SERVER,
    pace: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", parser=parse_seconds, help="The time before each move, on average."
        ),
    ] = 2.0,
    stay: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep the seats at the end. Their tokens are stored in this folder, and the next "
            "start with it continues in them.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Let bots sit down at a table, so that you can try it alone.

    They add random bytes to shuffles, and draw, play and discard cards at random, as the table's
    rules allow. If the table has a turn marker, they wait for it and pass it on. They see what
    their seats may see, and the log and the pages say that they are bots. Ctrl-C ends them, and
    they leave their seats.

    ```
    dealer bots 3 http://localhost:8080/tables/0123456789abcdef0123456789abcdef
    dealer bots 1 0123456789abcdef0123456789abcdef --pace 0.5
    ```
    """
    from dealer.bots import Bots, read_link

    try:
        link = read_link(table, server=server)
    except BadRequest as error:
        raise typer.BadParameter(str(error)) from None
    if link.ticket or link.token:
        raise typer.BadParameter("This link is for one player; give the one for inviting players.")
    run(_until_interrupted(Bots(link, count, pace=pace, store=stay, report=echo)))


async def _until_interrupted(party: Bots) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await party.run(stop)
