"""The database under a running server is deleted or replaced; one is started without, or older."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.gateway.guest import Guest, Refusal
from tests.postgres import Postgres
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.nodes import Node


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Node]:
    (tmp_path / "house").mkdir()
    database = tmp_path / "house" / "dealer.db"
    node = Node(tmp_path / "house", name="node", address=f"sqlite:///{database}")
    node.database = database
    del node.options["house-key"]
    await node.open()
    yield node
    with suppress(AssertionError):
        await node.close()


class Seated:
    """A host and a player at a table with an open, shuffled round."""

    def __init__(self, host: Guest, player: Guest, table: str, token: str) -> None:
        self.host, self.player, self.table, self.token = host, player, table, token

    @classmethod
    async def at(cls, house: HouseProcess) -> Seated:
        host, player = [await Guest.arrive(house.port) for _ in range(2)]
        opened = await host.ask("table.open")
        await player.ask("table.join", table=opened["table"], name="Ada")
        await host.ask("round.open", entropy="house")
        await host.ask("deck.shuffle")
        return cls(host, player, opened["table"], opened["host_token"])

    async def leave(self) -> None:
        for guest in (self.host, self.player):
            await guest.leave()


def readyz(house: Node) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{house.ops_port}/readyz", timeout=PATIENT) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


async def logged(house: HouseProcess, event: str) -> None:
    async with asyncio.timeout(PATIENT):
        while event not in house.output.read_text():  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)


def back_up(file: Path, to: Path) -> Path:
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(to)) as made:
        live.backup(made)
    return to


def restore(copy: Path, file: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)
    shutil.copyfile(copy, file)


async def stopped(house: Node) -> int:
    house.tell_to_close()
    return await house.ended()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_database_that_is_gone_acknowledges_nothing(
    house: Node, tmp_path: Path, replaced: bool
) -> None:
    seated = await Seated.at(house)
    if replaced:
        os.replace(back_up(house.database, tmp_path / "copy.db"), house.database)
        before = house.database.read_bytes()
    else:
        house.database.unlink()
    version = max(seated.player.versions)
    with pytest.raises(Refusal) as refused:
        await seated.player.ask("deck.draw")
    assert refused.value.reason == "unavailable"
    status, says = await asyncio.to_thread(readyz, house)
    assert (status, "while the server had it open" in says) == (503, True)
    assert max(seated.player.versions) == version
    await seated.leave()
    assert await stopped(house) == 1
    assert "while the server had it open" in house.output.read_text()
    if replaced:
        assert house.database.read_bytes() == before
    else:
        assert not house.database.exists()


async def test_an_idle_server_notices_by_itself(house: Node) -> None:
    house.database.unlink()
    await logged(house, "database file lost")
    assert await stopped(house) == 1


async def test_what_was_acknowledged_is_rescued_from_the_process(
    house: Node, tmp_path: Path
) -> None:
    """As OPERATING.md says it: copy the deleted files, stop, put them back, start."""
    seated = await Seated.at(house)
    drawn = await seated.player.ask("deck.draw")
    for file in house.database.parent.glob("dealer.db*"):
        if file.name in ("dealer.db", "dealer.db-wal", "dealer.db-shm"):
            file.unlink()
    await logged(house, "database file lost")
    handles = f"/proc/{house.pid}/fd"
    for number in os.listdir(handles):
        for end in ("", "-wal"):
            if os.readlink(f"{handles}/{number}") == f"{house.database}{end} (deleted)":
                shutil.copyfile(f"{handles}/{number}", tmp_path / f"rescued{end}")
    await seated.leave()
    assert await stopped(house) == 1
    for file in house.database.parent.glob("dealer.db-*"):
        file.unlink()
    for end in ("", "-wal"):
        shutil.copyfile(tmp_path / f"rescued{end}", f"{house.database}{end}")
    await house.open()
    guest = await Guest.arrive(house.port)
    there = await guest.ask("table.watch", table=seated.table)
    assert there["version"] == drawn["version"]
    assert "database older than its mark" not in house.output.read_text()
    await guest.leave()


@pytest.mark.parametrize("empty", [False, True])
async def test_a_key_without_its_database_begins_no_new_house(house: Node, empty: bool) -> None:
    seated = await Seated.at(house)
    await seated.leave()
    await house.close()
    house.database.unlink()
    if empty:
        house.database.touch()
    await house.start()
    assert await house.ended() == 1
    said = house.output.read_text()
    assert ("is empty, but the key" if empty else "is missing. Put the database back") in said
    assert house.database.exists() == empty
    for file in house.database.parent.glob("dealer.db*"):
        file.unlink()  # moved elsewhere, as the sentence says
    await house.open()


@pytest.mark.parametrize("killed", [False, True])
async def test_an_older_copy_under_the_next_server_does_not_deal_on(
    house: Node, tmp_path: Path, killed: bool
) -> None:
    seated = await Seated.at(house)
    copy = back_up(house.database, tmp_path / "copy.db")
    await seated.player.ask("deck.draw")
    await seated.leave()
    await (house.kill() if killed else house.close())
    restore(copy, house.database)
    await house.open()
    guest = await Guest.arrive(house.port)
    state = (await guest.ask("table.watch", table=seated.table))["state"]
    assert state["closed"]
    with pytest.raises(Refusal) as refused:
        await guest.ask("deck.shuffle", table=seated.table, token=seated.token)
    assert refused.value.reason == "table_closed"
    assert (await guest.ask("table.open"))["table"]
    await guest.leave()


async def test_nor_on_a_server_that_was_restored(postgres: Postgres, tmp_path: Path) -> None:
    name = postgres.database()
    node = Node(tmp_path, name="node", address=postgres.url(name))
    await node.open()
    seated = await Seated.at(node)
    await seated.leave()
    await node.close()
    postgres.ask("postgres", f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    await node.open()
    guest = await Guest.arrive(node.port)
    await guest.ask("deck.cut", table=seated.table, token=seated.token, at=3)
    await guest.leave()
    await node.kill()
    postgres.drop(name)
    postgres.ask("postgres", f"CREATE DATABASE {name} TEMPLATE {name}_copy")
    await node.open()
    guest = await Guest.arrive(node.port)
    assert (await guest.ask("table.watch", table=seated.table))["state"]["closed"]
    await guest.leave()
    await node.close()
    for one in (name, f"{name}_copy"):
        postgres.drop(one)
