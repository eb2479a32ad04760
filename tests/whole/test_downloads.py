"""Bundles and histories of a long table leave the server no larger, however many ask at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.gateway.asking import get
from tests.gateway.guest import Guest
from tests.whole.floods import memory
from tests.whole.house import HouseProcess

SHUFFLES = 12
CARDS = 988
GROWTH = 1.2
"""By which the process may have grown, at the most; a history made within it takes 1.2 or more."""


async def long_table(port: int) -> str:
    """A table of some 12,000 events."""
    host = await Guest.arrive(port)
    table = (await host.ask("table.open"))["table"]
    await host.ask("round.open", entropy="house", deck={"decks": CARDS // 52})
    for _ in range(SHUFFLES):
        await host.ask("deck.shuffle")
    await host.ask("round.close")
    await host.leave()
    return str(table)


async def stuck(port: int, path: str) -> asyncio.StreamWriter:
    """A client that asks for a download and reads nothing of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await reader.read(1)
    return writer


async def test_downloads_leave_the_server_no_larger(tmp_path: Path) -> None:
    async with HouseProcess(tmp_path) as house:
        path = f"/tables/{await long_table(house.port)}"
        await house.projected()
        assert (await get(house.port, "/")).status == 200
        before = memory(house.pid)
        idle = [await stuck(house.port, f"{path}/bundle.jsonl") for _ in range(40)]
        history = get(house.port, f"{path}/history.txt")
        bundles = [get(house.port, f"{path}/bundle.jsonl") for _ in range(3)]
        answers = await asyncio.gather(history, *bundles)
        assert [answer.status for answer in answers] == [200] * 4
        assert len({answer.body for answer in answers}) == 2
        assert memory(house.pid) < GROWTH * before
        for writer in idle:
            writer.close()


async def test_a_history_too_long_for_the_web_names_the_way_that_is_left(tmp_path: Path) -> None:
    async with HouseProcess(tmp_path, limit="history=50") as house:
        host = await Guest.arrive(house.port)
        table = (await host.ask("table.open"))["table"]
        await host.ask("round.open", entropy="house")
        path = f"/tables/{table}"
        assert (await get(house.port, f"{path}/history.txt")).status == 200
        await host.ask("deck.shuffle")
        refused = await get(house.port, f"{path}/history.txt")
        assert refused.status == 404
        assert "more than 50 are not made here" in refused.text
        assert "dealer history" in refused.text
        assert (await get(house.port, f"{path}/bundle.jsonl")).status == 200
        await host.leave()
