"""Notifier: hints reach the other nodes, in few messages, and invalid ones are ignored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from dealer.eventlog.postgres import reader as module
from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.eventlog.postgres.reader import CHANNEL, Notifier
from tests.eventlog.conftest import TemporaryPostgres
from tests.eventlog.requests import A, B


class Node:
    """A notifier, and the tables of the notifications that it has received."""

    def __init__(self, url: str) -> None:
        self.notifier = Notifier(PostgresDatabase(url), self._on_notification)
        self.received: set[bytes] = set()
        self._changed = asyncio.Event()

    def _on_notification(self, tables: set[bytes]) -> None:
        self.received |= tables
        self._changed.set()

    async def until_received(self, *tables: bytes) -> None:
        async with asyncio.timeout(20):
            while not self.received.issuperset(tables):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def nodes(postgres_database: TemporaryPostgres) -> AsyncIterator[list[Node]]:
    """Two nodes that receive each other's hints."""
    async with AsyncExitStack() as stack:
        nodes = [Node(postgres_database.url) for _ in range(2)]
        for node in nodes:
            node.notifier.start()
            stack.push_async_callback(node.notifier.close)
        for number, node in enumerate(nodes):
            other, mark = nodes[1 - number], bytes([number]) * 16
            async with asyncio.timeout(20):
                while mark not in other.received:
                    node.notifier.notify([mark])
                    await asyncio.sleep(0)
        yield nodes


async def test_a_hint_reaches_the_other_node_and_not_its_sender(nodes: list[Node]) -> None:
    one, other = nodes
    one.notifier.notify([A, B])
    await other.until_received(A, B)
    other.notifier.notify([b"z" * 16])
    await one.until_received(b"z" * 16)
    assert not {A, B} & one.received


async def test_many_tables_are_in_few_hints_and_none_is_left_out(
    nodes: list[Node], postgres_database: TemporaryPostgres
) -> None:
    one, other = nodes
    texts: list[str] = []
    third, complete = await asyncpg.connect(postgres_database.url), asyncio.Event()

    def on_hint(*arguments: Any) -> None:
        texts.append(arguments[-1])
        if tables <= {
            bytes.fromhex(text[at : at + 32]) for text in texts for at in range(0, len(text), 32)
        }:
            complete.set()

    await third.add_listener(CHANNEL, on_hint)
    tables = {number.to_bytes(16, "big") for number in range(1000, 2000)}
    loop = asyncio.get_running_loop()
    started = loop.time()
    for table in tables:
        one.notifier.notify([table])
        await asyncio.sleep(0)
    await other.until_received(*tables)
    async with asyncio.timeout(20):
        await complete.wait()
    passed = loop.time() - started
    await third.close()
    # A payload has at most 200 tables, so a thousand need five; more may follow at 20 a second.
    assert 5 <= len(texts) <= 5 + 2 + passed / module.PAUSE_SECONDS
    assert max(map(len, texts)) < 8000


async def test_an_invalid_hint_is_ignored(
    nodes: list[Node], postgres_database: TemporaryPostgres
) -> None:
    one, other = nodes
    postgres_database.execute(f"SELECT pg_notify('{CHANNEL}', 'junk')")
    one.notifier.notify([A])
    await other.until_received(A)


async def test_a_notifier_connects_again(
    nodes: list[Node],
    postgres_database: TemporaryPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    one, other = nodes
    postgres_database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(20):
        while A not in other.received:
            one.notifier.notify([A])
            await asyncio.sleep(0)
