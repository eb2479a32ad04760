"""`house.broadcast(link)`: hands as the players saw them, verified like everything else."""

from __future__ import annotations

import pytest

from dealer.errors import BadRequest, BadToken


async def test_a_commentator_sees_all_hands_and_follows(connect, proxy, real_server):
    async with connect(name="Ann") as hers, connect(name="Bob") as his, connect(proxy.url) as eyes:
        ann = await hers.join(await hers.open(rules={"broadcast": 0, "watch": "nobody"}))
        bob = await his.join(ann.id)
        address = f"https://cards.example{await ann.broadcast_link()}"
        await ann.round_open(entropy="house")
        await ann.shuffle()
        await ann.draw(2)
        await bob.draw()
        table = await eyes.broadcast(address)
        await table.until(lambda table: table.version == bob.version)
        assert table.stack("hand:1") == ann.hand
        assert table.stack("hand:2") == bob.hand
        assert set(table.stack("deck")) == {"??"}
        assert table.state.round.known == {
            seat: set(table.state.round.stacks[f"hand:{seat}"]) for seat in (1, 2)
        }
        with pytest.raises(BadRequest, match="at the table already"):
            await eyes.broadcast(address)
        # After a lost connection it goes on where it was.
        proxy.cut()
        await bob.draw()
        await table.until(lambda table: len(table.stack("hand:2")) == 2)
        assert table.stack("hand:2") == bob.hand
        assert (await ann.revoke_broadcast(), await ann.revoke_broadcast()) == (True, False)
    async with connect() as late:
        with pytest.raises(BadToken, match="There is no broadcast with this link"):
            await late.broadcast(address)
        with pytest.raises(BadRequest, match="A broadcast link ends with"):
            await late.broadcast(address[:-1] + "/")
