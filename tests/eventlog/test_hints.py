"""A tap on the shoulder: it reaches the others, not too often, and is only a hint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import asyncpg
import pytest

from dealer.eventlog import hints as module
from dealer.eventlog.hints import CHANNEL, Hints
from dealer.eventlog.server import Server
from tests.eventlog.asked import A, B
from tests.eventlog.conftest import PostgresHouse


class Ear:
    """What one house has heard."""

    def __init__(self) -> None:
        self.heard: set[bytes] = set()
        self.news = asyncio.Event()

    def hear(self, tables: set[bytes]) -> None:
        self.heard |= tables
        self.news.set()

    async def until(self, truth: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not truth():
                self.news.clear()
                await self.news.wait()


@pytest.fixture
async def houses(server_place: PostgresHouse) -> AsyncIterator[list[tuple[Hints, Ear]]]:
    """Two houses that hear each other."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            ear = Ear()
            hints = Hints(Server(server_place.url), ear.hear)
            hints.start()
            stack.push_async_callback(hints.close)
            found.append((hints, ear))
        for n, (hints, _) in enumerate(found):
            ear, mark = found[1 - n][1], bytes([n]) * 16
            async with asyncio.timeout(20):
                while mark not in ear.heard:
                    hints.tell([mark])
                    await asyncio.sleep(0)
        yield found


async def test_the_others_hear_and_the_teller_does_not(houses: list[tuple[Hints, Ear]]) -> None:
    (one, own), (other, ear) = houses
    one.tell([A, B])
    await ear.until(lambda: {A, B} <= ear.heard)
    other.tell([b"z" * 16])
    await own.until(lambda: b"z" * 16 in own.heard)
    assert not {A, B} & own.heard


async def test_many_appends_are_few_hints_and_none_is_left_out(
    houses: list[tuple[Hints, Ear]], server_place: PostgresHouse
) -> None:
    (one, _), (_, ear) = houses
    texts: list[str] = []
    third = await asyncpg.connect(server_place.url)
    await third.add_listener(CHANNEL, lambda *said: texts.append(said[-1]))
    tables = {number.to_bytes(16, "big") for number in range(1000, 2000)}
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for table in tables:
        one.tell([table])
        await asyncio.sleep(0)
    await ear.until(lambda: tables <= ear.heard)
    passed = loop.time() - begun
    await third.execute("SELECT 1")
    await third.close()
    # A payload names 200 tables at the most, so the thousand need five; the rest is 20 a second.
    assert 5 <= len(texts) <= 5 + 2 + passed / module.PAUSE_SECONDS
    assert max(map(len, texts)) < 8000


async def test_what_is_no_list_of_tables_is_nobodys_hint(
    houses: list[tuple[Hints, Ear]], server_place: PostgresHouse
) -> None:
    (one, _), (_, ear) = houses
    server_place.server.ask(server_place.database, f"SELECT pg_notify('{CHANNEL}', 'junk')")
    one.tell([A])
    await ear.until(lambda: A in ear.heard)


async def test_a_line_that_is_lost_is_made_again(
    houses: list[tuple[Hints, Ear]],
    server_place: PostgresHouse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    (one, _), (_, ear) = houses
    server_place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(20):
        while A not in ear.heard:
            one.tell([A])
            await asyncio.sleep(0)
