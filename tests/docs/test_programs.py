"""The programs of dealer/docs/examples, run in a clone by the commands of their README."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio

from dealer.client.house import connect
from dealer.errors import NotEntitled
from tests.docs.conftest import SERVE
from tests.docs.tutorial import Reader, blocks
from tests.harness.installed import missing, program
from tests.harness.server_process import PATIENT, ROOT
from tests.web.client.node_client import sockets
from tests.web.js_verifier import node

EXAMPLES = ROOT / "dealer" / "docs" / "examples"
PROGRAMS = sorted(path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".mjs", ".go"))
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", README, re.MULTILINE))
LINK = re.compile(r"/tables/(\w+)#ticket=([\w-]+)")
FIRST = "python dealer/docs/examples/go_fish.py"
"""The game whose commands the README shows in full."""

GAMES = {
    FIRST: "Books: … to …",
    "node dealer/docs/examples/go_fish.mjs": "Books: … to …",
    "node dealer/docs/examples/war.mjs": "Cards: … to …",
}
"""What each command prints at the end of the game."""


@pytest_asyncio.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    """A reader in a clone with the examples and the client, where `dealer serve` runs."""
    copies = tmp_path / EXAMPLES.relative_to(ROOT)
    copies.mkdir(parents=True)
    (tmp_path / "dealer" / "web").symlink_to(ROOT / "dealer" / "web")
    async with Reader(tmp_path) as reader:
        for path in PROGRAMS:
            text = reader.with_ports(path.read_text(encoding="utf-8"))
            (copies / path.name).write_text(text, encoding="utf-8")
        await reader.follow(SERVE)
        yield reader


def test_the_programs_are_short_and_in_the_readme() -> None:
    assert [path.name for path in PROGRAMS] == sorted(re.findall(r"\]\((\w+\.\w+)\)", README))
    for path in PROGRAMS:
        assert len(path.read_text(encoding="utf-8").splitlines()) < 80, path.name


@pytest.mark.slow
@pytest.mark.parametrize("command", GAMES)
async def test_a_game(reader: Reader, command: str) -> None:
    text = SECTIONS["Go Fish and War"]
    assert command in text
    text = text.replace(FIRST, command).replace(GAMES[FIRST], GAMES[command])
    if command.startswith("node"):
        text = text.replace("\nnode", f"\n{node()} {' '.join(sockets())}")
    await reader.follow(text)


@pytest.mark.slow
async def test_the_bot_returns_to_its_seat(reader: Reader) -> None:
    """Killed while it is not its turn, and started again after the turn came to it."""
    async with connect(reader.url, name="Ada") as house:
        table = await house.join(await house.open(deck="54"))
        seated = SECTIONS["A bot"].replace("TABLE", table.id)
        await reader.follow(seated)
        await table.round_open()
        await table.shuffle()
        await table.deal(3)
        await table.note("turn", "2")
        await table.until(lambda table: table.markers.turn == 1, timeout=PATIENT)
        assert (len(table.piles["table"]), len(table.stack("hand:2"))) == (1, 2)
        await reader.close_terminal(4)
        await table.note("turn", "2")
        await reader.follow(seated)
        await table.until(lambda table: table.markers.turn == 1, timeout=PATIENT)
        assert (len(table.piles["table"]), len(table.stack("hand:2"))) == (2, 1)
        assert table.seats == {1: "Ada", 2: "Robot"}


@pytest.mark.slow
async def test_the_bot_plays_no_second_card_in_a_turn(reader: Reader) -> None:
    """Killed after its card and before it passed the turn on, and started again."""
    async with connect(reader.url, name="Ada") as house:
        table = await house.join(await house.open(deck="54"))
        seated = SECTIONS["A bot"].replace("TABLE", table.id)
        await reader.follow(seated)
        await table.round_open()
        await table.shuffle()
        await table.deal(3)
        await reader.close_terminal(4)
        await table.note("turn", "2")
        async with connect(reader.url, store=reader.folder / "seat-of-Robot") as robots:
            seat = await robots.join(table.id)
            await seat.play(seat.hand[0])
        await reader.follow(seated)
        await table.until(lambda table: table.markers.turn == 1, timeout=PATIENT)
        assert (len(table.piles["table"]), len(table.stack("hand:2"))) == (1, 2)


@pytest.mark.slow
async def test_the_backend_seats_its_users_and_stores_the_feed(reader: Reader) -> None:
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            missing(f"{package} is not installed (pip install {package})")
    program("curl")
    program("sqlite3")
    start, started, log_in, links, look, stored = (
        one.text for one in blocks(SECTIONS["A backend"])
    )
    await reader.type(start, started)
    printed = await reader.type(log_in, links)
    for (table, ticket), name in zip(LINK.findall(printed), ("Ada", "Bob"), strict=True):
        async with connect(reader.url) as house:
            with pytest.raises(NotEntitled):
                await house.join(table, name="Eve")
            seated = await house.join(table, ticket=ticket)
            assert seated.seat is not None
            assert seated.seats[seated.seat] == name
    assert list(seated.seats.values()) == ["Ada", "Bob"]
    seats = look.splitlines()[1].replace("FROM event", "FROM event WHERE version = 3")
    await reader.type(f"# Terminal 6\nuntil {seats} | grep SeatTaken; do :; done\n")
    await reader.type(look, f"{stored}2|SeatTaken\n3|SeatTaken\n")
    refused = log_in.partition("  curl -sS -w")[0].replace("secret of", "password of")
    await reader.type(f"{refused}done\n", '{"detail":"wrong password"}')
