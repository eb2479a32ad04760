"""A database with two played tables, and helpers that run `dealer`."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dealer.cli import main
from dealer.cli.demo_game import play
from dealer.client import RemoteTable
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Deal, OpenRound, StartShuffle, TakeSeat
from dealer.gateway import serve as open_gateway
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions

HOST = Actor(host=True)


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Played(NamedTuple):
    """A folder with a database: table `closed` was played to its end, `open` is in its first round.

    `key` and `saved` are the table's key and the checkpoints as the players of `closed` know them.
    """

    folder: Path
    closed: str
    open: str
    key: str
    saved: list[str]

    @property
    def file(self) -> Path:
        return self.folder / "dealer.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"


Ask = Callable[..., Answer]


@pytest.fixture
def logging_kept() -> Iterator[None]:
    """Restores the logging configuration after a command."""
    root, ours = logging.getLogger(), logging.getLogger("dealer")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    logging.captureWarnings(False)


@pytest.fixture
def ask(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, logging_kept: None
) -> Ask:
    """Runs `dealer` with arguments; its exit code and output."""
    for name in [name for name in os.environ if name.startswith("DEALER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def ask(*arguments: object) -> Answer:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        code = exit_.value.code
        return Answer(code if isinstance(code, int) else 0, out.decode(), err.decode())

    return ask


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return asyncio.run(_make(tmp_path_factory.mktemp("server")))


@pytest.fixture
def played(made: Played, tmp_path: Path) -> Played:
    """A copy of the database with its key for one test."""
    folder = tmp_path / "server"
    shutil.copytree(made.folder, folder)
    return made._replace(folder=folder)


async def _make(folder: Path) -> Played:
    url = f"sqlite:///{folder / 'dealer.db'}"
    keys: set[str] = set()
    saved: list[str] = []

    def on_end(table: RemoteTable) -> None:
        assert table.key is not None
        keys.add(table.key.hex())
        saved.extend(table.checkpoints)

    async with open_service(url, ServiceOptions(house="house.example")) as service:
        async with open_gateway(service, port=0) as gateway:
            address = f"ws://127.0.0.1:{gateway.port}/ws"
            closed = await play(address, lambda _: None, on_end=on_end)
        live_table, _ = await service.open_table({"name": "Still \u202eplaying"})
        for name in ("Eve", "Fay"):
            await service.execute(live_table, TakeSeat(name))
        for command in (
            OpenRound(HOST, STANDARD, "house", 1000, 1000),
            StartShuffle(HOST),
            Deal(HOST, 2),
        ):
            await service.execute(live_table, command)
    return Played(folder, closed, live_table.table_id, keys.pop(), saved)


async def play_and_open(url: str, key: Path) -> tuple[str, str]:
    """The ids of a table that was played to its end, and of an open one."""
    async with open_service(url, ServiceOptions(house="house.example"), house_key=key) as service:
        async with open_gateway(service, port=0) as gateway:
            closed = await play(f"ws://127.0.0.1:{gateway.port}/ws", lambda _: None)
        live_table, _ = await service.open_table({"name": "open"})
        return closed, live_table.table_id


class Serving:
    """`dealer serve` as a subprocess."""

    def __init__(self, *arguments: object, cwd: Path) -> None:
        command = [sys.executable, "-m", "dealer", "serve", *map(str, arguments)]
        root = str(Path(__file__).resolve().parents[2])
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DEALER_")}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=kept | {"PYTHONPATH": root},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.hint = ""

    @property
    def address(self) -> str:
        """The address that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found is not None, f"{line!r} {self.process.communicate(timeout=60)}"
        self.hint = self.process.stdout.readline()
        return found[0]

    def end(self, how: signal.Signals = signal.SIGTERM) -> Answer:
        self.process.send_signal(how)
        return self.ended()

    def ended(self) -> Answer:
        out, err = self.process.communicate(timeout=60)
        return Answer(self.process.returncode, out, err)


Serve = Callable[..., Serving]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers in the test's folder and kills those that still run at its end."""
    started: list[Serving] = []

    def serve(*arguments: object) -> Serving:
        started.append(Serving(*arguments, cwd=tmp_path))
        return started[-1]

    yield serve
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()
