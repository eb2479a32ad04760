"""Conflicts: what was decided on a state that another process overtook is decided again or void."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import NotYourSeat
from dealer.game.commands import Actor, CheckDeadlines, Draw, LeaveSeat, TakeSeat
from dealer.game.view import SPECTATOR
from dealer.proof.checkpoint import read_checkpoint
from dealer.proof.tree import Tree, leaf_hash
from tests.service.tables import round_of, shared_table, shuffled_table


async def test_a_void_state_is_not_signed(open_service) -> None:
    """Two heads of one length under the house's key would be evidence that it cheated."""
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    await two.execute(there, TakeSeat("Dan"))
    one.submit(here, TakeSeat("Eve"), done=lambda _: None)
    seen = await one.checkpoints.snapshot(here, SPECTATOR)
    tree = Tree()
    tree.extend(
        [
            leaf_hash(entry.leaf.encode())
            for entry in await one.reader.entries(here, 0, seen.version)
        ]
    )
    assert read_checkpoint(seen.checkpoint).root == tree.root()


async def test_a_command_that_changes_nothing_is_not_answered_from_a_void_state(
    open_service,
) -> None:
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    await two.execute(there, TakeSeat("Dan"))
    for name in ("Eve", "Fay"):
        one.submit(here, TakeSeat(name), done=lambda _: None)
    seen: list[tuple[int, int]] = []
    done = asyncio.Event()

    def on_result(outcome: Any) -> None:
        seen.append((outcome.version, here.committed))
        done.set()

    one.submit(here, CheckDeadlines(0), done=on_result)
    await done.wait()
    ((version, committed),) = seen
    assert version <= committed


async def test_a_lost_seat_cannot_act(open_service) -> None:
    one, two = await open_service(), await open_service()
    here = await shuffled_table(one)
    there = await two.lifecycle.load(here.table_id)
    ann = Actor(seat=1, taken_at=here.table.seats[1].taken_at)
    await two.execute(there, LeaveSeat(ann))
    await two.execute(there, TakeSeat("Carol", seat=1))
    assert here.committed < there.committed
    with pytest.raises(NotYourSeat):
        await one.execute(here, Draw(ann))
    assert round_of(here).cards("hand:1") == []


async def test_an_internal_error_in_a_quick_reload_is_reported(open_service) -> None:
    """The table is read as a whole then, so the error would otherwise go unnoticed."""
    one, two = await open_service(), await open_service()
    here, there = await shared_table(one, two)
    await two.execute(there, TakeSeat("Dan"))
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))

    def fail(*_: object) -> None:
        raise KeyError("a bug")

    one.loader._follow = fail
    try:
        await one.lifecycle.catch_up(here)
    finally:
        loop.set_exception_handler(None)
    assert here.committed == there.committed
    assert [type(context["exception"]) for context in reported] == [KeyError]
