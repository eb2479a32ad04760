"""A table whose host is absent for long gets another host."""

from __future__ import annotations

import pytest

from tests.gateway.absent_players import LONG, Watched, watched_table
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import seat_players
from tests.harness.service_keys import add_key, with_key

pytestmark = pytest.mark.usefixtures("often_polled")


async def test_the_longest_seated_player_with_a_connection_becomes_host(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=3)
    await table.host.call("seat.vacate", seat=1)
    newest = await connect(watched.node)
    await newest.call("table.join", table=table.id, name="newest", seat=1)
    await watched.until(table.id, present={1, 2, 3}, host=True)
    assert await watched.host_after(table.id, 10 * LONG) is None
    await table.host.close()
    await table.players[1].close()
    await watched.until(table.id, present={1, 3}, host=False)
    assert await watched.host_after(table.id, LONG - 1) is None
    assert await watched.host_after(table.id, 1) == 3
    await table.players[2].call("round.open", entropy="house")
    # The one who opened the table is host again when the new host has left.
    back = await connect(watched.node)
    await back.call("table.resume", table=table.id, token=table.host_token, after=0)
    with pytest.raises(Refusal, match="only the host"):
        await back.call("deck.shuffle")
    await table.players[2].call("table.leave")
    await back.call("deck.shuffle")


async def test_an_absent_player_who_is_host_is_replaced_too(
    open_node: OpenGateway, connect: Connect
) -> None:
    watched, table = await watched_table(open_node, connect, players=2)
    await table.host.call("table.transfer_host", seat=2)
    await table.players[1].close()
    await watched.until(table.id, present={1}, host=True)
    assert await watched.host_after(table.id, LONG) == 1


async def test_tables_of_services_and_without_players_keep_their_host(
    open_node: OpenGateway, connect: Connect
) -> None:
    node = await open_node()
    watched = Watched(node)
    shop = await connect(node, **with_key(await add_key(node.context.service)))
    player, spectator = await connect(node), await connect(node)
    of_service = (await shop.call("table.open"))["table"]
    await player.call("table.join", table=of_service, name="Ada")
    await shop.close()
    await watched.until(of_service, present={1}, host=False)
    assert await watched.host_after(of_service, 2 * LONG) is None
    table = await seat_players(connect, node, players=0)
    await spectator.call("table.watch", table=table.id)
    bot = await connect(node)
    await bot.call("table.join", table=table.id, name="bot")
    (await node.context.service.lifecycle.load(table.id)).table.seats[1].bot = True
    await table.host.close()
    await watched.until(table.id, present={1}, host=False)
    assert await watched.host_after(table.id, 2 * LONG) is None


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_host_at_another_node_is_not_absent(
    open_node: OpenGateway, connect: Connect
) -> None:
    one, two = await open_node(), await open_node()
    watched = Watched(one)
    table = await seat_players(connect, one, players=1)
    await table.host.close()
    host = await connect(two)
    await host.call("table.resume", table=table.id, token=table.host_token, after=0)
    await watched.until(table.id, present={1}, host=True)
    assert await watched.host_after(table.id, 10 * LONG) is None
    await host.close()
    await watched.until(table.id, present={1}, host=False)
    assert await watched.host_after(table.id, LONG) == 1
