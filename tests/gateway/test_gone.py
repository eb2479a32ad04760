"""Answers that wait for the disk: whoever else goes, they come, and no sooner than it is there."""

from __future__ import annotations

import asyncio

import pytest

from dealer.errors import Conflicted
from dealer.game.commands import TakeSeat
from dealer.game.view import SPECTATOR
from dealer.service import Service


async def test_who_goes_while_they_wait_does_not_keep_others_waiting(service: Service) -> None:
    table, _ = await service.open_table({})
    sitting = asyncio.create_task(service.call(table, TakeSeat("Ada", None, None)))
    await asyncio.sleep(0)  # judged, and not on disk yet
    assert table.committed < table.table.version
    first, second = (asyncio.create_task(service.snapshot(table, SPECTATOR)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await sitting
    async with asyncio.timeout(10):
        assert (await second).version == 2


async def test_no_is_not_said_before_that_is_on_disk_for_which_it_is_said(
    service: Service,
) -> None:
    """A house that dies in between would have told of what never was."""
    table, _ = await service.open_table({})
    sitting = asyncio.create_task(service.call(table, TakeSeat("Ada", None, None)))
    late = asyncio.create_task(service.call(table, TakeSeat("Bob", None, None), expect=1))
    late.add_done_callback(lambda _: known.append(table.committed))
    known: list[int] = []
    await asyncio.wait((late,))
    assert known == [2]
    await sitting
    with pytest.raises(Conflicted):
        await late
