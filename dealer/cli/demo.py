"""See it: four players, a whole game, and then every question that one could ask about it."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import HouseKey, HouseUrl, asked_rightly
from dealer.cli.output import program, say
from dealer.config import DATABASE_VARIABLE

if TYPE_CHECKING:
    from dealer.client import RemoteTable
    from dealer.service import Service


def demo(
    url: HouseUrl = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the demonstration's own house keeps its log, like sqlite:///demo.db; a "
            f"temporary folder if not given ({DATABASE_VARIABLE} is not looked at).",
            show_default=False,
        ),
    ] = None,
    house_key: HouseKey = None,
    pace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="A pause after each move, to watch.")
    ] = 0.0,
) -> None:
    """Let four players play a whole game over real sockets, then check it.

    A house opens on a free port, unless --url names one that is open. The game has two rounds:
    shuffles with random bytes of all players, a deal, draws from the top and from anywhere,
    discards, a reshuffle, and a player whose connection is cut and who resumes. Then the table
    closes, its bundle is verified, and the read models are made again from the log and compared.
    The exit code is 0 if every answer is yes.

    ```
    dealer demo
    dealer demo --pace 1
    dealer demo --database sqlite:///demo.db
    ```
    """
    from dealer.cli.serve import run

    if url is not None and database is not None:
        raise typer.BadParameter("Give --url or --database, not both.")
    answers: list[bool] = []
    run(_demo(url, database, house_key, pace, answers))
    if not all(answers):
        raise typer.Exit(1)


async def _demo(
    url: str | None,
    database: str | None,
    house_key: Path | None,
    pace: float,
    answers: list[bool],
) -> None:
    from dealer.cli.bundle import web_address
    from dealer.eventlog import key_file
    from dealer.eventlog.server import check_address
    from dealer.gateway import serve as open_gateway
    from dealer.service.opening import open_service

    if url is not None:
        table = await _play_and_check(web_address(url), pace, answers)
        say(f"The table is at {web_address(url)}/tables/{table}")
        return
    async with AsyncExitStack() as stack:
        where = None
        if database is not None:
            with asked_rightly():
                where = check_address(database)
                key_file(database, house_key)
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="dealer-"))
            database = f"sqlite:///{Path(folder) / 'dealer.db'}"
        service = await stack.enter_async_context(open_service(database, house_key=house_key))
        gateway = await stack.enter_async_context(open_gateway(service, port=0))
        address = f"http://127.0.0.1:{gateway.port}"
        say(f"The house is open at {address}/ while this lasts.")
        table = await _play_and_check(address, pace, answers)
        await _rebuild(service, answers)
    if where is not None:
        say(f"To see each swap of it: {program()} audit {table} --database {shlex.quote(where)}")


async def _play_and_check(address: str, pace: float, answers: list[bool]) -> str:
    """Play a game at the house at `address`; the id of its table."""
    from dealer.cli.bundle import from_house, socket_address
    from dealer.cli.play import play
    from dealer.cli.verify import examine, say_verdicts

    seen: list[RemoteTable] = []
    table = await play(socket_address(address), say, pace=pace, witness=seen.append)
    say()
    say("Was it fair? From the table's bundle, what the players' clients kept, and nothing else:")
    lines = await asyncio.to_thread(from_house, address, table)
    key = seen[0].key
    report = examine(
        [line.encode(errors="surrogateescape") for line in lines],
        key=None if key is None else key.hex(),
        saved=[note for one in seen for note in one.checkpoints],
    )
    say_verdicts(report)
    answers.append(report.ok)
    return table


async def _rebuild(service: Service, answers: list[bool]) -> None:
    from dealer.projector.rebuild import Rebuild
    from dealer.projector.runner import Projector

    # What the read models have not come to yet would be compared with nothing.
    await service.log.schedule(Projector().slice)
    work = Rebuild()
    await service.log.schedule(work.slice)
    same = not work.different and not work.stopped
    answers.append(same)
    say(
        f"rebuild: yes, SQL tables made again from {work.done} events are those that stood there"
        if same
        else f"rebuild: no, {work.different} rows differ from what the log says"
    )
