"""The rule `collect`: cards of another player's hand; and the size of a table's rules."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.game.events import TableOpened
from dealer.proof.verify import verify
from dealer.service.tables import table_ids
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import seat_and_shuffle


async def collect(table: Any) -> Any:
    await table.host.call("deck.deal", each=2)
    return await table.host.call("pile.move", **{"from": "hand:1"}, to="pile:discard", count=2)


@pytest.mark.parametrize("preset", ["free", "dealer", "shared"])
async def test_no_player_collects_unless_the_rules_allow_it(gateway, connect, preset) -> None:
    table = await seat_and_shuffle(connect, gateway, preset=preset)
    with pytest.raises(Refusal, match="do not allow anyone to collect"):
        await collect(table)
    assert (await table.host.call("table.state"))["state"]["rules"] == {
        "collect": "nobody",
        "preset": preset,
    }


async def test_the_host_collects_if_the_rules_allow_it(gateway, connect, service) -> None:
    table = await seat_and_shuffle(connect, gateway, collect="host")
    await collect(table)
    rules = (await table.players[0].call("table.state"))["state"]["rules"]
    assert rules == {"collect": "host"}
    await table.host.call("round.close")
    lines = [line async for line in service.bundle(await service.lifecycle.load(table.id))]
    assert verify(lines, key=service.keys.public_key).fault is None


async def test_the_host_collects_at_a_table_of_an_older_version(
    gateway, connect, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.service.service.for_new_table", dict)  # as in older versions
    table = await seat_and_shuffle(connect, gateway, preset="dealer")
    monkeypatch.undo()
    await collect(table)
    assert (await table.host.call("table.state"))["state"]["rules"] == {"preset": "dealer"}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"note": "x" * 2048}, "2048 bytes at most"),
        ({f"r{n}": n for n in range(400)}, "Leave something out"),
        ({"name": "x" * 65}, "name of a table"),
        ({"name": "\u200b\u3164"}, "visible"),
    ],
)
async def test_rules_that_are_too_long_or_invisible_are_refused(
    gateway, connect, rules, message
) -> None:
    host = await connect(gateway)
    with pytest.raises(Refusal, match=message):
        await host.call("table.open", rules=rules)


async def test_a_deck_of_1024_cards_is_not_too_long(gateway, connect) -> None:
    host = await connect(gateway)
    deck = [f"{number:04}" for number in range(1024)]
    opened = await host.call("table.open", deck=deck, rules={"note": "x" * 1900})
    await host.call("table.join", table=opened["table"], name="Ada")
    await host.call("round.open", table=opened["table"], entropy="house")


async def test_a_table_with_longer_rules_of_an_older_version_is_loaded(
    gateway, connect, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_ids, "RULES_MAX", 2**20)
    live_table, done = await service.open_table({"note": "x" * 10_000})
    monkeypatch.undo()
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    service.tables.bytes_bound = 1
    await service.tables.load_or_create(bytes(16))
    service.tables.bytes_bound = 2**30
    again = await service.lifecycle.load(live_table.table_id)
    assert again is not live_table
    assert again.table.rules.given == opened.rules
    client = await connect(gateway)
    assert (await client.call("table.join", table=again.table_id, name="Ada"))["seat"] == 1
