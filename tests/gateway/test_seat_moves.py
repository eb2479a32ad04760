"""A player moves to another seat: the token and repeated commands stay those of the player."""

from __future__ import annotations

import pytest

from tests.gateway.rpc_client import Refusal, reason_of
from tests.gateway.tables import seat_players
from tests.gateway.test_views import codes_in
from tests.harness.service_keys import add_key, with_key

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("often_polled")]


async def test_a_player_moves_and_sees_the_cards_of_the_new_seat(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2, watch="nobody")
    ann, bob = table.players
    before = table.joined[1]["version"]
    moved = await bob.call("seat.move", to=4, cmd="the move")
    await ann.until_version(moved["version"])
    await bob.until_version(moved["version"])
    assert ann.types(before) == bob.types(before) == ["NoteAdded", "SeatLeft", "SeatTaken"]
    assert ann.events[-1]["public"] == {"seat": 4}
    assert ann.events[-1]["opened"]["part"] == {"name": "player 2"}
    resumed = await bob.call("table.resume", token=table.tokens[1], after=moved["version"])
    assert resumed["seat"] == 4
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    drawn = await bob.call("deck.draw", count=2)
    await bob.until_version(drawn["version"])
    assert codes_in(bob.frames) >= set(drawn["cards"])
    await ann.until_version(drawn["version"])
    assert codes_in(ann.frames) == set()


async def test_a_repeated_move_is_answered_as_before_on_a_new_connection(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    bob = table.players[1]
    moved = await bob.call("seat.move", to=4, cmd="the move")
    await bob.close()  # as if the answer had been lost
    again = await connect(gateway)
    resumed = await again.call("table.resume", table=table.id, token=table.tokens[1], after=0)
    assert resumed["seat"] == 4
    assert await again.call("seat.move", to=4, cmd="the move") == moved
    with pytest.raises(Refusal, match="Seat 4 is taken"):
        await again.call("seat.move", to=4, cmd="another move")
    seats = (await again.call("table.state"))["state"]["seats"]
    assert [one["seat"] for one in seats] == [1, 4]


async def test_another_node_follows_and_a_restart_does(open_node, connect) -> None:
    first, second = await open_node(), await open_node()
    table = await seat_players(connect, first, players=1)
    there = await connect(second)
    await there.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    moved = await there.call("seat.move", to=3)
    ann = table.players[0]
    await ann.until_version(moved["version"])
    left = await ann.call("table.leave")
    await there.until_version(left["version"])
    assert there.events[-1]["public"] == {"seat": 3}
    late = await connect(second)
    refused = late.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await reason_of(refused) == "bad_token"


async def test_a_ticket_and_a_user_keep_their_seat_after_a_move(gateway, connect) -> None:
    key = await add_key(gateway.context.service)
    shop = await connect(gateway, **with_key(key))
    table = (await shop.call("table.open"))["table"]

    async def ticket() -> str:
        made = await shop.call("seat.ticket", table=table, name="Dora", subject="user 7")
        return str(made["ticket"])

    dora = await connect(gateway)
    cmd = "22 characters or more are needed"
    given = {"table": table, "ticket": await ticket(), "cmd": cmd}
    joined = await dora.call("table.join", **given)
    await dora.call("seat.move", to=6)
    again = await connect(gateway)
    assert (await again.call("table.join", **given))["seat"] == 6
    phone = await connect(gateway)
    found = await phone.call("table.join", table=table, ticket=await ticket())
    assert found["seat"] == 6
    assert found["token"] != joined["token"]
    assert [one["seat"] for one in found["state"]["seats"]] == [6]


async def test_the_host_asks_and_a_service_asks(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    ann, bob = table.players
    asked = await table.host.call("seat.move", seat=2, to=5)
    await bob.until_version(asked["version"])
    assert bob.events[-1]["public"] == {"seat": 0, "kind": "seat_offer", "text": "2-5"}
    with pytest.raises(Refusal, match="Only the host"):
        await ann.call("seat.move", seat=2, to=5)
    assert (await bob.call("seat.move", to=5))["version"] == asked["version"] + 3
