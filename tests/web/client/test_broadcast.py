"""`house.broadcast(link)` of the JavaScript client: all hands, verified, and no presence."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


async def test_a_commentator_sees_all_hands_and_follows(clients, real_server):
    result = await clients.run(
        """
        const { connect } = client;
        const [hers, his, eyes] = await Promise.all([1, 2, 3].map(() => connect(args.url)));
        const ann = await hers.join(await hers.open({ rules: { broadcast: 0, watch: "nobody" } }));
        const bob = await his.join(ann.id);
        const link = `https://cards.example${await ann.broadcastLink()}`;
        await ann.roundOpen({ entropy: "house" });
        await ann.shuffle();
        await ann.draw(2);
        const table = await eyes.broadcast(link);
        await bob.draw();
        await table.until(({ version }) => version === bob.version, { timeout: 20_000 });
        const hands = [1, 2].map((seat) => table.stack(`hand:${seat}`));
        const deck = new Set(table.stack("deck"));
        const revoked = [await ann.revokeBroadcast(), await ann.revokeBroadcast()];
        const again = await (await connect(args.url)).broadcast(link).catch(({ reason }) => reason);
        const wrong = await eyes.broadcast("x").catch(({ message }) => message);
        return { hands, own: [ann.hand, bob.hand], deck: [...deck], watching: table.presence.size,
                 revoked, again, wrong };
        """,
        url=real_server.url,
    )
    assert result["hands"] == result["own"]
    assert [len(hand) for hand in result["hands"]] == [2, 1]
    assert result["deck"] in (["??"], [None])
    assert result["watching"] == 0
    assert result["revoked"] == [True, False]
    assert result["again"] == "bad_token"
    assert result["wrong"].startswith("A broadcast link ends with")
