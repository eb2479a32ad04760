"""Consistency proofs of a table's log: those of RFC 6962, with few rows read for each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import DatabaseDamaged
from dealer.eventlog import EventRecord
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.rows import leaf_of
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.reading import consistency
from dealer.service.reading.consistency import ConsistencyProofs
from dealer.service.tables.live_table import LiveTable
from tests.proof.whole_tree import consistency_proof

A = bytes(16)
BLOCK = 8


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "BLOCK", BLOCK)


class FakeLog:
    """The rows of one table, and how many of them were read."""

    dialect = "sqlite"

    def __init__(self, count: int, *, text: str = "") -> None:
        self.rows = [
            EventRecord(version, "NoteAdded", 1, version, f'{{"kind":"program","text":"{text}"}}')
            for version in range(1, count + 1)
        ]
        self.read_rows = 0

    async def read(self, table: bytes, *, after: int, limit: int) -> list[EventRecord]:
        await asyncio.sleep(0)
        found = self.rows[after : after + limit]
        self.read_rows += len(found)
        return found

    async def fetch(self, *_: object) -> list[Any]:
        return []

    def leaves(self) -> list[bytes]:
        return [leaf_hash(leaf_of(A, row).encode()) for row in self.rows]

    def edge(self, size: int) -> list[str]:
        tree = Tree()
        tree.extend(self.leaves()[:size])
        return [node.hex() for node in tree.edge]


async def yield_to_loop() -> None:
    await asyncio.sleep(0)


class Proofs:
    """The proofs of one table, compared with those computed from all leaves."""

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.live_table = LiveTable(A, A.hex())
        self._proofs = ConsistencyProofs(log, DamagedTables())  # type: ignore[arg-type]

    async def check(self, old: int, new: int) -> None:
        found = await self._proofs.proof(
            self.live_table, old=old, new=new, edge=self.log.edge(new), pause=yield_to_loop
        )
        wanted = consistency_proof(self.log.leaves()[:new], old)
        assert found == [node.hex() for node in wanted], (old, new)

    def replace_log(self, log: FakeLog) -> None:
        self.log = self._proofs._log = log  # type: ignore[assignment]


@given(st.lists(st.tuples(st.integers(1, 75), st.integers(1, 75)), max_size=8))
def test_every_proof_is_that_of_the_whole_log(versions: list[tuple[int, int]]) -> None:
    async def check_all() -> None:
        proofs = Proofs(FakeLog(75))
        for pair in versions:
            await proofs.check(min(pair), max(pair))

    asyncio.run(check_all())


async def test_a_second_proof_reads_two_blocks() -> None:
    proofs = Proofs(FakeLog(75))
    await proofs.check(30, 70)
    proofs.log.read_rows = 0
    await proofs.check(13, 75)
    assert proofs.log.read_rows <= 3 * BLOCK


async def test_proofs_at_the_same_time_do_not_disturb_each_other() -> None:
    proofs = Proofs(FakeLog(75))
    pairs = [(1, 75), (40, 64), (7, 9), (74, 75), (8, 72)]
    await asyncio.gather(*(proofs.check(old, new) for old, new in pairs))
    await proofs.check(33, 75)


async def test_a_log_that_was_rewound_is_read_again() -> None:
    proofs = Proofs(FakeLog(75))
    await proofs.check(30, 75)
    proofs.replace_log(FakeLog(60, text="other"))
    await proofs.check(30, 60)


async def test_a_log_without_this_edge_is_reported() -> None:
    proofs = Proofs(FakeLog(75))
    proofs.log.edge = FakeLog(75, text="other").edge  # type: ignore[method-assign]
    with pytest.raises(DatabaseDamaged):
        await proofs.check(30, 75)


async def test_missing_events_are_reported() -> None:
    proofs = Proofs(FakeLog(75))
    edge = proofs.log.edge
    proofs.replace_log(FakeLog(50))
    proofs.log.edge = edge  # type: ignore[method-assign]
    with pytest.raises(DatabaseDamaged):
        await proofs.check(30, 75)
