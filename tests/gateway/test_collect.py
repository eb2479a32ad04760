"""Cards of another's hand: nobody takes them, unless the rules, which all can read, say so."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.game.events import TableOpened
from dealer.proof.verify import verify
from dealer.service import founding
from tests.gateway.guest import Refusal
from tests.gateway.tables import shuffled


async def collect(table: Any) -> Any:
    await table.host.ask("deck.deal", each=2)
    return await table.host.ask("pile.move", **{"from": "hand:1"}, to="pile:discard", count=2)


@pytest.mark.parametrize("preset", ["free", "dealer", "shared"])
async def test_nobody_collects_where_the_rules_do_not_say_so(gateway, arrive, preset) -> None:
    table = await shuffled(arrive, gateway, preset=preset)
    with pytest.raises(Refusal, match="nobody may collect"):
        await collect(table)
    assert (await table.host.ask("table.state"))["state"]["rules"] == {
        "collect": "nobody",
        "preset": preset,
    }


async def test_the_host_collects_where_the_rules_say_so(gateway, arrive, service) -> None:
    table = await shuffled(arrive, gateway, collect="host")
    await collect(table)
    rules = (await table.players[0].ask("table.state"))["state"]["rules"]
    assert rules == {"collect": "host"}
    await table.host.ask("round.close")
    lines = [line async for line in service.bundle(await service.load(table.id))]
    assert verify(lines, key=service.public_key).fault is None


async def test_a_table_of_an_older_version_keeps_what_it_had(
    gateway, arrive, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dealer.service.core.for_new_table", dict)  # as older versions did
    table = await shuffled(arrive, gateway, preset="dealer")
    monkeypatch.undo()
    await collect(table)
    assert (await table.host.ask("table.state"))["state"]["rules"] == {"preset": "dealer"}


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"note": "x" * 2048}, "2048 bytes at most"),
        ({f"r{n}": n for n in range(400)}, "Leave something out"),
        ({"name": "x" * 65}, "name of a table"),
        ({"name": "\u200b\u3164"}, "can be seen"),
    ],
)
async def test_rules_that_are_too_long_or_unseen_are_refused(gateway, arrive, rules, says) -> None:
    host = await arrive(gateway)
    with pytest.raises(Refusal, match=says):
        await host.ask("table.open", rules=rules)


async def test_a_deck_of_1024_cards_is_no_too_long_rule(gateway, arrive) -> None:
    host = await arrive(gateway)
    deck = [f"{number:04}" for number in range(1024)]
    opened = await host.ask("table.open", deck=deck, rules={"note": "x" * 1900})
    await host.ask("table.join", table=opened["table"], name="Ada")
    await host.ask("round.open", table=opened["table"], entropy="house")


async def test_a_log_with_longer_rules_is_read_as_ever(
    gateway, arrive, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(founding, "RULES_MAX", 2**20)
    resident, done = await service.open_table({"note": "x" * 10_000})
    monkeypatch.undo()
    (opened,) = (event for event in done.events if isinstance(event, TableOpened))
    service.memory.bytes_bound = 1
    await service.memory.found(bytes(16))
    service.memory.bytes_bound = 2**30
    again = await service.load(resident.table_id)
    assert again is not resident
    assert again.table.rules.given == opened.rules
    guest = await arrive(gateway)
    assert (await guest.ask("table.join", table=again.table_id, name="Ada"))["seat"] == 1
