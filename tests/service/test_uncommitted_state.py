"""Answers computed from uncommitted events: each is given after the commit of these events."""

from __future__ import annotations

import asyncio

import pytest

from dealer.errors import VersionConflict
from dealer.game.commands import TakeSeat
from dealer.game.view import SPECTATOR
from dealer.service import Service

pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def test_a_cancelled_caller_does_not_keep_another_waiting(service: Service) -> None:
    table, _ = await service.open_table({})
    joining = asyncio.create_task(service.execute(table, TakeSeat("Ada", None, None)))
    await asyncio.sleep(0)  # decided, and not committed yet
    assert table.committed < table.table.version
    first, second = (
        asyncio.create_task(service.checkpoints.snapshot(table, SPECTATOR)) for _ in range(2)
    )
    await asyncio.sleep(0)
    first.cancel()
    await joining
    async with asyncio.timeout(30):
        assert (await second).version == 2


async def test_a_refusal_is_sent_after_the_commit_of_its_reason(service: Service) -> None:
    """A server killed before the commit would have reported an event that was never written."""
    table, _ = await service.open_table({})
    joining = asyncio.create_task(service.execute(table, TakeSeat("Ada", None, None)))
    late = asyncio.create_task(service.execute(table, TakeSeat("Bob", None, None), expect=1))
    late.add_done_callback(lambda _: committed.append(table.committed))
    committed: list[int] = []
    await asyncio.wait((late,))
    assert committed == [2]
    await joining
    with pytest.raises(VersionConflict):
        await late
