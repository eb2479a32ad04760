"""What one process judged on a state that another has overtaken is judged again, or never was."""

from __future__ import annotations

import pytest

from dealer.errors import NotYourSeat
from dealer.game.commands import Actor, Draw, LeaveSeat, StartShuffle, TakeSeat
from dealer.game.view import SPECTATOR
from dealer.proof.checkpoint import read_checkpoint
from dealer.proof.tree import Tree, leaf_hash
from tests.service.test_service import HOST, table_of


async def test_no_state_is_signed_that_another_process_overtook(open_service) -> None:
    """Two heads of one length under the house's key would be proof that it cheated."""
    one, two = await open_service(), await open_service()
    here = await table_of(one)
    there = await two.load(here.table_id)
    await two.call(there, TakeSeat("Dan"))
    one.perform(here, TakeSeat("Eve"), done=lambda _: None)
    seen = await one.snapshot(here, SPECTATOR)
    tree = Tree()
    tree.extend(
        [leaf_hash(entry.leaf.encode()) for entry in await one.entries(here, 0, seen.version)]
    )
    assert read_checkpoint(seen.checkpoint).root == tree.root()


async def test_nobody_acts_from_a_seat_that_another_took_elsewhere(open_service) -> None:
    one, two = await open_service(), await open_service()
    here = await table_of(one)
    await one.call(here, StartShuffle(HOST))
    there = await two.load(here.table_id)
    ann = Actor(seat=1, since=here.table.seats[1].since)
    await two.call(there, LeaveSeat(ann))
    await two.call(there, TakeSeat("Carol", seat=1))
    assert here.committed < there.committed
    with pytest.raises(NotYourSeat):
        await one.call(here, Draw(ann))
    assert here.table.round.cards("hand:1") == []
