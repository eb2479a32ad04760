from __future__ import annotations

import pytest


async def test_smoke(gateway, arrive):
    host = await arrive(gateway)
    opened = await host.ask("table.open", name="t", rules={"preset": "free"})
    print(opened)
    table = opened["table"]
    ann = await host.ask("table.join", table=table, name="Ann")
    bob = await arrive(gateway)
    joined = await bob.ask("table.join", table=table, name="Bob")
    r = await host.ask("round.open", entropy="house")
    r = await host.ask("deck.shuffle")
    r = await host.ask("deck.deal", each=2)
    print(r)
    r = await host.ask("deck.draw", count=2, cmd="x")
    print(r)
    r = await bob.ask("deck.draw", from_="random")
    print(r)
    await bob.seen(r["version"])
    await host.seen(r["version"])
    print(host.versions == list(range(3, 1+r["version"])), bob.versions)
    print([len(f) for f in bob.frames], bob.frames[-3:])
    r = await host.ask("round.close")
    print(r)
