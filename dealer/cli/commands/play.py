"""Play: `dealer demo`, `dealer bots` and `dealer practice`."""

from __future__ import annotations

import asyncio
import re
import shlex
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from dealer.cli.options import PATH, command, given, parse_seconds, takes, usage_errors
from dealer.cli.output import echo, program, say_json
from dealer.cli.process import stop_by_signal
from dealer.config.settings import DATABASE_VARIABLE, Settings
from dealer.errors import BadRequest, DealerError, amount

if TYPE_CHECKING:
    from dealer.bots.links import TableLink
    from dealer.client import RemoteTable
    from dealer.service import Service

LOCAL_SERVER = f"ws://localhost:{Settings.port}/ws"

_DIGITS = re.compile(r"[0-9a-f]{1,31}")

takes_table = click.argument(
    "table",
    help="The table's id, the first digits of it if the lobby lists it, or a link to it, as its "
    "page shows under Invite.",
)
takes_url = given(
    "--url", "URL", "The server's address, if TABLE is an id, not a link.", default=LOCAL_SERVER
)


@command(
    help="""Let four players play a whole game over real sockets, then check it.

    The game has two rounds: shuffles with random bytes from all players, a deal, draws from the top
    and from random places, discards, a reshuffle, and a player whose connection is lost and who
    resumes. Then the table closes, and its bundle is verified. If no server runs here, one starts
    on a free port; then the read models are also rebuilt from the log and compared, and the
    database is kept. The exit code is 0 if every check passes.

    ```
    dealer demo
    dealer demo --pace 1
    dealer demo --database sqlite:///demo.db
    ```
    """
)
@given(
    "--url",
    "URL",
    "Address of the server to play at. Default: the one that runs at port "
    f"{Settings.port} of this machine, or a new one if there is none.",
)
@given(
    "--database",
    "URL",
    "Play at a server of its own, which stores its log here, like sqlite:///demo.db "
    f"({DATABASE_VARIABLE} is ignored).",
)
@takes("house_key")
@given("--pace", "SECONDS", "Seconds between two moves.", type=click.FloatRange(0), default=0.0)
async def demo(url: str | None, database: str | None, house_key: Path | None, pace: float) -> None:
    if url is not None and database is not None:
        raise click.BadParameter("Give --url or --database, not both.")
    if not await _demo(url, database, house_key, pace):
        raise Exit(1)


async def _demo(url: str | None, database: str | None, house_key: Path | None, pace: float) -> bool:
    """Whether every check has passed."""
    from dealer.cli.commands.verify import web_address
    from dealer.eventlog import key_file
    from dealer.eventlog.address import sqlite_address
    from dealer.eventlog.backends import check_address
    from dealer.gateway import serve as open_gateway
    from dealer.service.build import open_service

    if database is None:
        address = web_address(url) if url is not None else await asyncio.to_thread(_running)
        if address is not None:
            echo(f"The game is played at the server {address}/.")
            table, fair = await _play_and_check(address, pace)
            _say_where(table, f"--url {shlex.quote(f'{address}/')}", page=address)
            return fair
        folder = Path(tempfile.mkdtemp(prefix="dealer-demo-"))
        database = sqlite_address(folder / "dealer.db")
    with usage_errors():
        shown = check_address(database)
        key_file(database, house_key)
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_service(database, house_key=house_key))
        gateway = await stack.enter_async_context(open_gateway(service, port=0))
        address = f"http://127.0.0.1:{gateway.port}"
        echo(f"The server is running at {address}/ until the demo ends.")
        table, fair = await _play_and_check(address, pace)
        same = await _rebuild(service)
    option = f"--database {shlex.quote(shown)}"
    _say_where(table, option)
    key = "" if house_key is None else f" --house-key {shlex.quote(str(house_key))}"
    echo(f"The database is kept: {shown}. A server on it: {program()} serve {option}{key}")
    return fair and same


def _running() -> str | None:
    """The address of the pages of the server at the default port of this machine, or None."""
    from dealer.cli.commands.verify import download

    address = f"http://127.0.0.1:{Settings.port}"
    try:
        return address if b'"scripts"' in download(f"{address}/integrity.json", seconds=2) else None
    except DealerError:
        return None


def _say_where(table: str, option: str, *, page: str | None = None) -> None:
    """Print where the table can be seen, and the commands that check it."""
    echo()
    if page is not None:
        echo(f"Every swap, with the verifier: {page}/tables/{table}/audit")
    echo("Check the game yourself:")
    echo(f"  {program()} audit {table} {option}")
    echo(f"  {program()} history {table} {option}")
    echo(f"  {program()} export {table} {option} -o game.jsonl")
    echo(f"  {program()} verify game.jsonl")


async def _play_and_check(address: str, pace: float) -> tuple[str, bool]:
    """Play a game on the server at `address`; the id of its table, and whether it verifies."""
    from dealer.cli.commands.verify import examine, from_house, say_verdicts, socket_address
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
    result = (
        f"rebuilt from {amount(work.done, 'event')}, they are the same as before"
        if same
        else f"{amount(work.different, 'row differs', 'rows differ')} from the log"
    )
    echo(
        f"{'passed' if same else 'failed'}: The SQL tables agree with the log (rebuild): {result}."
    )
    return same


@command(
    help="""Let bots sit down at a table, so that you can try it alone.

    They add random bytes to shuffles, and draw, play and discard cards at random, as the table's
    rules allow. If the table has a turn marker, they wait for it and pass it on. They see what
    their seats may see, and the log and the pages say that they are bots. Ctrl-C ends them, and
    they leave their seats.

    ```
    dealer bots 3 http://localhost:8080/tables/0123456789abcdef0123456789abcdef
    dealer bots 1 0123456789abcdef0123456789abcdef --pace 0.5
    ```
    """
)
@click.argument("count", type=click.IntRange(1, 50), metavar="N", help="How many bots.")
@takes_table
@takes_url
@given(
    "--pace", "SECONDS", "The time before each move, on average.", type=parse_seconds, default=2.0
)
@given(
    "--stay",
    "FOLDER",
    "Keep the seats at the end. Their tokens are stored in this folder, and the next "
    "start with it continues in them.",
    type=PATH,
)
async def bots(count: int, table: str, url: str, pace: float, stay: Path | None) -> None:
    from dealer.bots import Bots

    link = await _link(table, url)
    if link.ticket or link.token:
        raise click.BadParameter("This link is for one player; give the one for inviting players.")
    party, stop = Bots(link, count, pace=pace, store=stay, report=echo), asyncio.Event()
    stop_by_signal(stop)
    await party.run(stop)


async def _link(table: str, server: str) -> TableLink:
    """The table that a link, an id or the first digits of an id in the lobby mean."""
    from dealer.bots import read_link
    from dealer.bots.links import socket_address
    from dealer.client import connect

    digits = table.strip().lower().replace("-", "")
    with usage_errors():
        if not _DIGITS.fullmatch(digits):
            return read_link(table, server=server)
        async with connect(socket_address(server)) as house:
            ids = [listed["table"] for listed in await house.tables()]
        found = [id_ for id_ in ids if id_.startswith(digits)]
        if len(found) != 1:
            many = "several tables that start" if found else "no table that starts"
            raise BadRequest(
                f"The lobby of {server} has {many} with {digits}; give more digits, or all 32, "
                "or the link that the table's page shows under Invite."
            )
        return read_link(found[0], server=server)


@command(
    help="""
    Play on from any moment of a closed round: open a practice table, and print its addresses.

    Each card lies there as it lay at that version: in the hands, by seat, in piles and in the deck,
    face up or down. Who takes a seat takes its hand. A practice table is no fair deal, which its
    pages, its log and all verifiers say. The first address is for all, the second one for you
    alone: it has your seat, which is the host's.

    ```
    dealer practice http://localhost:8080/tables/0123456789abcdef0123456789abcdef --at 57
    dealer practice 0123456789abcdef0123456789abcdef --round 2
    ```
    """
)
@takes_table
@given("--round", "N", "The closed round.", type=click.IntRange(1), default=1)
@given(
    "--at",
    "VERSION",
    "A version of that round; without it the same shuffle again, with nothing dealt.",
    type=click.IntRange(1),
)
@given("--name", "NAME", "Your name at the new table.", default="Player")
@given(
    "--seat", "N", "Your seat, whose hand you get; the lowest if not given.", type=click.IntRange(1)
)
@takes_url
@takes("as_json")
async def practice(
    table: str, round: int, at: int | None, name: str, seat: int | None, url: str, as_json: bool
) -> None:
    link = await _link(table, url)
    members = {"table": link.table, "round": round, "version": at, "token": link.token}
    source = {key: value for key, value in members.items() if value is not None}
    opened = await _open_practice(link.server, source, name=name, seat=seat)
    if as_json:
        say_json(opened)
    else:
        echo(f"Practice table: {opened['url']}")
        echo(f"Your seat, for you alone: {opened['seat_url']}")


async def _open_practice(
    server: str, source: dict[str, object], *, name: str, seat: int | None
) -> dict[str, str]:
    from dealer.bots.links import page_address
    from dealer.client import connect

    async with connect(server, name=name) as house:
        opened = await house.open(from_=source)
        table = await house.join(opened, seat=seat)
        # The host's token ends with this process, but a seat's is in its address.
        await table.transfer_host(table.seat or 0)
        address = f"{page_address(server)}/tables/{table.id}"
        return {
            "table": table.id,
            "url": f"{address}#invite={opened.invite}",
            "seat_url": f"{address}#seat={table.token}",
        }
