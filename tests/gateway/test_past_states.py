"""`table.state` with `at`: a table at an earlier version, as a client could see it then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.gateway.tables import SeatedTable, seat_and_shuffle, seat_players
from tests.harness.service_keys import add_key, with_key


async def at(client: RpcClient, version: int, **params: Any) -> dict[str, Any]:
    answer = await client.call("table.state", at=version, **params)
    assert set(answer) == {"table", "version", "state"}
    assert answer["version"] == answer["state"]["version"] == version
    state: dict[str, Any] = answer["state"]
    return state


async def now(client: RpcClient, **params: Any) -> dict[str, Any]:
    state: dict[str, Any] = (await client.call("table.state", **params))["state"]
    return state


async def play(table: SeatedTable, seen: list[list[dict[str, Any]]]) -> None:
    """Two rounds with every kind of card that a viewer may know; `seen` gets all views."""
    host, (ann, bob) = table.host, table.players
    viewers = [host, ann, bob]

    async def step(client: RpcClient, method: str, **params: Any) -> dict[str, Any]:
        answer = await client.call(method, **params)
        seen.append([await now(viewer, table=table.id) for viewer in viewers])
        return answer

    for _ in range(2):
        drawn = await step(ann, "deck.draw", count=3)
        await step(bob, "deck.draw", count=2)
        await step(ann, "hand.show", cards=drawn["slots"][:1], to=2)
        await step(ann, "hand.give", cards=drawn["slots"][1:2], to=2)
        await step(ann, "hand.play", cards=drawn["slots"][2:])
        await step(host, "pile.shuffle", pile="table")
        await step(host, "table.note", kind="x", text="between")
        await step(host, "round.close")
        await step(host, "round.open", entropy="house")
        await step(host, "deck.shuffle")


async def test_each_viewer_gets_the_state_that_it_had(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    seen: list[list[dict[str, Any]]] = []
    await play(table, seen)
    assert len({state["version"] for state, *_ in seen}) == 20
    for states in seen:
        for viewer, state in zip([table.host, *table.players], states, strict=True):
            assert await at(viewer, state["version"], table=table.id) == state


async def test_the_order_between_swaps_and_seal_stays_hidden(gateway, connect) -> None:
    """Versions inside the append of a shuffle show the stack as it was before it."""
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    before = await now(ann)
    await table.host.call("deck.shuffle")
    sealed = (await now(ann))["version"]
    for version in range(before["version"] + 1, sealed):
        round_ = (await at(ann, version))["round"]
        assert round_["stacks"] == before["round"]["stacks"]
        assert round_["cards"] == []


async def test_a_new_holder_of_a_seat_sees_nothing_that_the_former_one_saw(
    gateway, connect
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    peeked = (await bob.call("deck.draw"))["slots"]
    drawn = await ann.call("deck.draw")
    shown = (await bob.call("hand.show", cards=peeked, to=1))["version"]
    assert len((await at(ann, shown))["round"]["cards"]) == 2
    await ann.call("table.leave")
    carol = await connect(gateway)
    joined = await carol.call("table.join", table=table.id, name="Carol", seat=1)
    assert joined["seat"] == 1
    spectator = await connect(gateway)
    for version in (drawn["version"], shown, joined["version"] - 1):
        expected = await at(spectator, version, table=table.id)
        assert expected["round"]["cards"] == []
        assert await at(carol, version) == expected
        # Who has left is a spectator, of the time before, too.
        assert await at(ann, version, table=table.id) == expected
    # The hand of the seat is hers from then on, the card that was shown to Ann is not.
    own = (await at(carol, joined["version"]))["round"]["cards"]
    assert [slot for slot, *_ in own] == drawn["slots"]


async def test_a_version_that_is_not_there(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    version = (await now(ann))["version"]
    with pytest.raises(Refusal, match=f"no version {version + 1}.* 1 to {version}") as refused:
        await ann.call("table.state", at=version + 1)
    assert refused.value.reason == "bad_request"
    for wrong in (0, -1, "3", 2**53):
        with pytest.raises(Exception, match="at"):
            await ann.call("table.state", at=wrong)


async def test_a_private_table_shows_strangers_no_version(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1, watch="nobody")
    stranger = await connect(gateway)
    for version in (1, 1_000):
        with pytest.raises(Refusal, match="not open to spectators"):
            await stranger.call("table.state", table=table.id, at=version)
    assert await at(stranger, 1, table=table.id, token=table.tokens[0])


async def test_a_service_reads_what_a_player_held_once_the_round_is_closed(
    service, gateway, connect
) -> None:
    shop = await connect(gateway, **with_key(await add_key(service)))
    table = (await shop.call("table.open", rules={"preset": "free"}))["table"]
    ann, bob = await connect(gateway), await connect(gateway)
    for client, name in ((ann, "Ann"), (bob, "Bob")):
        await client.call("table.join", table=table, name=name)
    await shop.call("round.open", table=table, entropy="house")
    await shop.call("deck.shuffle", table=table)
    await ann.call("deck.draw", count=2)
    held = await now(ann)
    drawn = (await bob.call("deck.draw"))["version"]
    seen_by_bob = await now(bob)
    version = held["version"]
    for seat in (1, 2, 3):
        with pytest.raises(Refusal, match="Round 1 is still open") as refused:
            await shop.call("table.state", table=table, at=version, seat=seat)
        assert refused.value.reason == "not_entitled"
    await ann.call("table.leave")
    await shop.call("round.close", table=table)
    assert await at(shop, version, table=table, seat=1) == held
    assert await at(shop, drawn, table=table, seat=2) == seen_by_bob
    assert (await at(shop, version, table=table))["round"]["cards"] == []
    with pytest.raises(Refusal, match=f"Seat 3 was free at version {version}"):
        await shop.call("table.state", table=table, at=version, seat=3)
    with pytest.raises(Refusal, match="Say in `at`"):
        await shop.call("table.state", table=table, seat=1)
    with pytest.raises(Refusal, match="Only a service"):
        await bob.call("table.state", table=table, at=version, seat=1)
    other = await connect(gateway, **with_key(await add_key(service, "other")))
    with pytest.raises(Refusal, match="Only a service"):
        await other.call("table.state", table=table, at=version, seat=1)


async def calls_until_refused(client: RpcClient, params: dict[str, Any]) -> int:
    for calls in range(40):
        try:
            await client.call("table.state", **params)
        except Refusal as refusal:
            return calls if refusal.reason == "rate_limited" else 0
    return 40


async def test_a_long_round_costs_more_than_one_message(open_gateway, connect, stop_clock) -> None:
    limits = replace(TEST_LIMITS, rate=1.0, burst=30.0)
    gateway = await open_gateway(limits=limits)
    stop_clock(gateway)
    table = await seat_and_shuffle(connect, gateway, players=1)
    costs = []
    for at in (None, 1, 57):
        client = await connect(gateway)
        params = {"table": table.id} if at is None else {"table": table.id, "at": at}
        costs.append(await calls_until_refused(client, params))
    assert costs[0] == 30
    assert costs[1] >= 29
    assert costs[2] < 20
