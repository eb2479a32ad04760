"""A stranger learns nothing of a table that is not open to spectators, but that it is there."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.gateway.commands import WISHES
from tests.gateway.asking import get
from tests.gateway.guest import Guest, Refusal
from tests.gateway.tables import Seated, seat_all

PARAMS: dict[str, dict[str, Any]] = {
    "deck.deal": {"each": 1},
    "deck.burn": {"count": 1},
    "deck.cut": {"at": 1},
    "deck.return": {"from": "deck", "count": 1},
    "deck.draw": {"count": 1},
    "hand.discard": {"cards": [1]},
    "hand.play": {"cards": [1]},
    "hand.give": {"cards": [1], "to": 1},
    "hand.show": {"cards": [1]},
    "hand.return": {"cards": [1]},
    "pile.draw": {"pile": "x"},
    "pile.move": {"pile": "x", "to": "deck"},
    "pile.shuffle": {"pile": "x"},
    "pile.turn": {"pile": "x"},
    "entropy.commit": {"round": 1, "k": 0, "digest": "00" * 32},
    "entropy.reveal": {"round": 1, "k": 0, "nonce": "00" * 32},
}
ASKED = ("table.watch", "table.state", "table.presence", "table.leave", "audit.bundle")


async def refusal(guest: Guest, method: str, **params: Any) -> str:
    with pytest.raises(Refusal) as caught:
        await guest.ask(method, **params)
    return f"{caught.value.error['data']['reason']}: {caught.value.error['message']}"


async def private_table(arrive: Any, gateway: Any) -> Seated:
    return await seat_all(arrive, gateway, watch="nobody", join="invite")


@pytest.mark.parametrize("method", [*WISHES, *ASKED])
async def test_every_request_has_one_answer_for_a_stranger(gateway, arrive, method: str) -> None:
    table = await private_table(arrive, gateway)
    stranger = await arrive(gateway)
    given = {"table": table.id, **PARAMS.get(method, {})}
    said = {await refusal(stranger, method, **given)}
    await table.host.ask("round.open", entropy="house")
    said.add(await refusal(stranger, method, **given))
    await table.host.ask("deck.shuffle")
    said.add(await refusal(stranger, method, **given))
    if method in WISHES or method == "table.leave":
        # Neither is the version to be found by halves.
        for expect in (0, 3, 2**40):
            said.add(await refusal(stranger, method, **given, expect=expect))
    await table.host.ask("table.close")
    said.add(await refusal(stranger, method, **given))
    assert said == {"not_entitled: This table is not open to spectators."}


async def test_nobody_finds_the_version_by_wanting_to_sit_down(gateway, arrive) -> None:
    table = await private_table(arrive, gateway)
    stranger = await arrive(gateway)
    said = {
        await refusal(stranger, "table.join", table=table.id, name="x", expect=expect, **more)
        for expect in (0, 1, 2**40)
        for more in ({}, {"invite": "0" * 32})
    }
    assert said == {"not_entitled: A seat at this table needs its invitation; ask the host for it."}


async def test_the_tables_own_players_and_host_do_all_that_they_may(gateway, arrive) -> None:
    table = await private_table(arrive, gateway)
    await table.host.ask("round.open", entropy="house")
    await table.host.ask("deck.shuffle")
    assert len((await table.players[0].ask("deck.draw"))["cards"]) == 1
    again = await arrive(gateway)
    await again.ask("deck.draw", table=table.id, token=table.tokens[1])
    await table.players[0].ask("table.leave")
    assert (await table.host.ask("table.state"))["state"]["rules"]["watch"] == "nobody"
    assert "not_" in await refusal(table.players[0], "deck.draw", table=table.id)


async def test_pages_show_a_stranger_nothing_of_it(gateway, arrive) -> None:
    table = await private_table(arrive, gateway)
    for what in ("bundle.jsonl", "history.txt"):
        got = await get(gateway.port, f"/tables/{table.id}/{what}", connection="close")
        assert got.status in (401, 403)
        assert "version" not in got.text
        assert "player 1" not in got.text


async def test_who_left_a_private_table_gets_its_version_no_more(gateway, arrive) -> None:
    table = await private_table(arrive, gateway)
    token, other = table.tokens[0], await arrive(gateway)
    await other.ask("audit.bundle", table=table.id, token=token)
    (standing,) = (await other.ask("session.refresh"))["tables"]
    assert standing["seat"] == 1
    await table.players[0].ask("table.leave")
    assert (await other.ask("session.refresh"))["tables"] == []
