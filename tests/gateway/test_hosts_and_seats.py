"""A host who leaves is followed by a player; players free seats and follow hosts who are away."""

from __future__ import annotations

import pytest

from dealer.gateway.presence.absence import LONG_SECONDS
from tests.gateway.absent_players import Watched, watched_table
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.rpc_client import Refusal
from tests.harness.service_keys import add_key, with_key

pytestmark = pytest.mark.usefixtures("often_polled")


async def test_a_player_follows_a_host_who_leaves_in_the_same_append(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=3)
    ada, bob, cleo = table.players
    await ada.call("table.resume", token=table.host_token, after=0)
    await table.host.close()
    await bob.close()
    await watched.until(table.id, present={1, 3}, host=True)
    before = (await watched.node.context.service.lifecycle.load(table.id)).table.version
    left = await ada.call("table.leave", cmd="one leave")
    assert left["host"] is True  # the connection stays, to watch
    await cleo.until_version(before + 2)
    assert cleo.types(before) == ["SeatLeft", "HostTransferred"]
    assert left["version"] == before + 2
    assert cleo.events[-1]["public"] == {"seat": 3}  # Bob sits longer, but is not here
    await cleo.call("round.open", entropy="house")
    with pytest.raises(Refusal, match="only the host"):
        await ada.call("deck.shuffle")


async def test_the_opener_without_a_seat_is_host_again_while_connected(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=3)
    await watched.until(table.id, present={1, 2, 3}, host=True)
    await table.host.call("table.transfer_host", seat=1)
    await table.players[0].call("table.leave")
    await table.host.call("table.transfer_host", seat=2)
    await table.host.close()
    await watched.until(table.id, present={2, 3}, host=False)
    await table.players[1].call("table.leave")
    assert (await table.players[2].call("table.state"))["state"]["host_seat"] == 3


async def test_players_free_a_seat_and_take_over_only_after_a_while(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=3)
    bob, cleo = table.players[1:]
    await table.players[0].close()
    await table.host.close()
    await watched.until(table.id, present={2, 3}, host=False)
    watched.clock.now += LONG_SECONDS - 1
    with pytest.raises(Refusal, match="away for 2 minutes"):
        await bob.call("seat.vacate", seat=1)
    with pytest.raises(Refusal, match="away for 2 minutes"):
        await bob.call("table.transfer_host", seat=2)
    watched.clock.now += 61
    freed = await bob.call("seat.vacate", seat=1, reason="never liked them", cmd="free")
    assert await bob.call("seat.vacate", seat=1, reason="never liked them", cmd="free") == freed
    await cleo.until_version(freed["version"])
    assert cleo.events[-1]["public"] == {"seat": 1, "by": "service"}
    assert cleo.events[-1]["opened"]["part"] == {"reason": "away for 3 minutes"}
    await bob.call("table.transfer_host", seat=2)
    with pytest.raises(Refusal, match="Only the host"):
        await cleo.call("table.transfer_host", seat=3)


async def test_a_player_who_is_back_keeps_the_seat(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=2)
    await table.players[0].close()
    await watched.until(table.id, present={2}, host=True)
    watched.clock.now += 2 * LONG_SECONDS
    back = await connect(watched.node)
    await back.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    with pytest.raises(Refusal, match="Only the host"):
        await table.players[1].call("seat.vacate", seat=1)


async def test_at_the_table_of_a_service_all_this_is_the_services(
    open_node: OpenGateway, connect: Connect
) -> None:
    node = await open_node()
    watched = Watched(node)
    shop = await connect(node, **with_key(await add_key(node.context.service)))
    table = (await shop.call("table.open"))["table"]
    players = [await connect(node) for _ in range(3)]
    for name, player in zip(("Ada", "Bob", "Cleo"), players, strict=True):
        await player.call("table.join", table=table, name=name)
    await shop.call("table.transfer_host", table=table, seat=1)
    await players[0].close()
    await watched.until(table, present={2, 3}, host=False)
    watched.clock.now += 2 * LONG_SECONDS
    with pytest.raises(Refusal, match=r"Only the host may remove a player\.$"):
        await players[1].call("seat.vacate", seat=1)
    with pytest.raises(Refusal, match="Only the host"):
        await players[1].call("table.transfer_host", seat=2)
    await shop.call("seat.vacate", table=table, seat=1)
    assert "host_seat" not in (await players[1].call("table.state"))["state"]
