"""The whole programs of the services' document, in three languages, beside two players."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from dealer.client import connect
from tests.chaos.feeds import read_leaves
from tests.e2e.test_services import connected
from tests.gateway.rpc_client import RpcClient, reason_of
from tests.harness.installed import go
from tests.harness.server_process import PATIENT, ServerProcess
from tests.web.js_verifier import node

DEALER = Path(__file__).parents[2] / "dealer"
DOCUMENT = (DEALER / "gateway/SERVICES.md").read_text(encoding="utf-8")
EXAMPLES = DEALER / "docs/examples"
PROGRAMS = dict(
    re.findall(r"```(\w+)\n(.*?)```", DOCUMENT.split("\n## A whole service\n")[1], re.DOTALL)
) | {
    language: (EXAMPLES / f"service.{suffix}").read_text(encoding="utf-8")
    for language, suffix in (("js", "mjs"), ("go", "go"))
}
CLOCK = (EXAMPLES / "turn_clock.py").read_text(encoding="utf-8")
LINES_MAX = 53


def python(folder: Path) -> list[str]:
    (folder / "service.py").write_text(PROGRAMS["python"], encoding="utf-8")
    return [sys.executable, "service.py"]


def javascript(folder: Path) -> list[str]:
    (folder / "service.mjs").write_text(PROGRAMS["js"], encoding="utf-8")
    return [node(), "service.mjs"]


def in_go(folder: Path) -> list[str]:
    """The program, built without modules and without a network."""
    (folder / "service.go").write_text(PROGRAMS["go"], encoding="utf-8")
    environment = os.environ | {"GO111MODULE": "off", "GOFLAGS": ""}
    environment.setdefault("GOCACHE", str(folder / "cache"))
    subprocess.run([go(), "build", "service.go"], check=True, cwd=folder, env=environment)
    return [str(folder / "service")]


def stored_objects(folder: Path) -> list[str]:
    """The texts of the feed's objects, as the program has stored them so far."""
    if (folder / "events.db").exists():
        with closing(sqlite3.connect(folder / "events.db")) as database:
            rows = database.execute("SELECT object FROM event ORDER BY rowid")
            return [text.strip() for (text,) in rows]
    file = folder / "events.jsonl"
    return file.read_text(encoding="utf-8").split("\n") if file.exists() else []


def stored_leaves(folder: Path, table: str) -> list[str]:
    """The texts of the events of a table; the half of a line that is being written is left out."""
    found = []
    for text in filter(lambda one: one.endswith("}}"), stored_objects(folder)):
        assert json.loads(text)["table"] == table
        beside = text[text.index('"event":') + len('"event":') : -1]
        found.append(beside.partition(',"opened":')[0])
    return found


@asynccontextmanager
async def running(
    command: list[str], folder: Path, environment: dict[str, str]
) -> AsyncIterator[Process]:
    """The program, until it is killed."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=PIPE, env=os.environ | environment
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def tickets(process: Process) -> tuple[str, list[str]]:
    """The table, and the two users' tickets, as the program prints them."""
    assert process.stdout is not None
    found = []
    for name in ("Ada", "Bob"):
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENT)).decode()
        match = re.match(rf"{name}: http://[\w.:]+/tables/(\w+)#ticket=(dt_\S+)\s*$", line)
        assert match is not None, line
        found.append(match)
    return found[0][1], [match[2] for match in found]


async def stored_all(server: ServerProcess, folder: Path, table: str) -> None:
    """Wait until the program has stored every event of the log, each once and in order."""
    leaves = list((await read_leaves(server.address))[table].values())
    async with asyncio.timeout(PATIENT):
        while len(stored_leaves(folder, table)) < len(leaves):  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)
    assert stored_leaves(folder, table) == leaves


@pytest.mark.parametrize("build", [python, javascript, in_go])
async def test_a_whole_service(tmp_path: Path, build: Callable[[Path], list[str]]) -> None:
    """Two players spend its tickets; it stores all events, through kills of it and the server."""
    folder = tmp_path / "service"
    folder.mkdir()
    command = build(folder)
    async with ServerProcess(tmp_path) as server:
        key = (await server.run_command("key", "add", "shop", "--may", "open,seat,read")).strip()
        host = await connected(server, key)
        environment = {"HOUSE": f"http://127.0.0.1:{server.port}", "KEY": key}
        async with running(command, folder, environment) as process:
            table, given = await tickets(process)
            players = [await RpcClient.connect(server.port) for _ in given]
            stranger = players[0].call("table.join", table=table, name="Eve")
            assert await reason_of(stranger) == "not_entitled"
            for player, ticket in zip(players, given, strict=True):
                await player.call("table.join", table=table, ticket=ticket)
            await host.call("round.open", table=table, entropy="house")
            await host.call("deck.shuffle", table=table)
            await players[0].call("deck.draw", table=table, count=2)
            await stored_all(server, folder, table)
            await server.kill()
            await server.open()
            host = await connected(server, key)
            await host.call("deck.deal", table=table, each=1)
            await stored_all(server, folder, table)
        await host.call("deck.deal", table=table, each=2)
        if (lines := folder / "events.jsonl").exists():
            with lines.open("a", encoding="utf-8") as file:
                file.write('{"position":"half a line')
        async with running(command, folder, environment) as process:
            again, _ = await tickets(process)
            assert again == table
            await stored_all(server, folder, table)
        await host.close()


@pytest.mark.parametrize("build", [python, javascript, in_go])
async def test_a_refusal_ends_a_service_with_its_sentence(
    tmp_path: Path, build: Callable[[Path], list[str]]
) -> None:
    """A key without a right, and one that the server does not know."""
    command = build(tmp_path)
    async with ServerProcess(tmp_path) as server:
        key = (await server.run_command("key", "add", "shop", "--may", "open,read")).strip()
        await (await connected(server, key)).close()
        for given, said in ((key, "the right `seat`"), ("dk_1", "key is not valid")):
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=tmp_path,
                stdout=PIPE,
                stderr=PIPE,
                env=os.environ | {"HOUSE": f"http://127.0.0.1:{server.port}", "KEY": given},
            )
            async with asyncio.timeout(PATIENT):
                _, errors = await process.communicate()
            assert process.returncode
            assert said in errors.decode()


async def test_the_service_with_a_clock(tmp_path: Path) -> None:
    """A turn whose time is up goes to the next player, and from the last one to the first."""
    async with ServerProcess(tmp_path) as server:
        program = CLOCK.replace("ws://localhost:8080/ws", server.url)
        (tmp_path / "clock.py").write_text(program, encoding="utf-8")
        key = (await server.run_command("key", "add", "clock", "--may", "open,read")).strip()
        await (await connected(server, key)).close()
        async with AsyncExitStack() as stack:
            ada, bob = [
                await stack.enter_async_context(connect(server.url, name=name))
                for name in ("Ada", "Bob")
            ]
            command = [sys.executable, "clock.py"]
            process = await stack.enter_async_context(running(command, tmp_path, {"KEY": key}))
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), PATIENT)
            table = await ada.join(line.decode().strip())
            await bob.join(table.id)
            await table.note(kind="clock", text="1")
            async with asyncio.timeout(PATIENT):
                await table.note(kind="turn", text="1")
                await table.until(lambda now: now.markers.turn == 2)
                await table.until(lambda now: now.markers.turn == 1)


def test_the_document_shows_the_function_of_the_program_with_a_clock() -> None:
    (shown,) = re.findall(r"```python\n(async def keep_time.*?)```", DOCUMENT, re.DOTALL)
    assert shown in CLOCK


@pytest.mark.parametrize("language", ["python", "js", "go"])
def test_the_programs_are_short(language: str) -> None:
    assert len(list(filter(str.strip, PROGRAMS[language].splitlines()))) <= LINES_MAX


def test_the_go_program_is_formatted(tmp_path: Path) -> None:
    file = tmp_path / "service.go"
    file.write_text(PROGRAMS["go"], encoding="utf-8")
    gofmt = str(Path(go()).with_name("gofmt"))
    done = subprocess.run([gofmt, "-l", file], capture_output=True, check=True)
    assert done.stdout == b""
