"""The tables of one connection: how many at once, and which of them count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import reason_of
from tests.gateway.tables import seat_players


async def test_the_tables_of_a_connection_are_limited(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables=2))
    client = await connect(gateway)
    first = await client.call("table.open")
    await client.call("table.open")
    other = await (await connect(gateway)).call("table.open")
    for method in ("table.open", "table.watch", "table.join"):
        more = {} if method == "table.open" else {"table": other["table"]}
        more |= {"name": "x"} if method == "table.join" else {}
        assert await reason_of(client.call(method, **more)) == "too_many_tables"
    await client.call("table.join", table=first["table"], name="x")


@pytest.mark.parametrize("ending", ["table.close", "table.leave"])
async def test_a_table_that_is_over_makes_room_for_another(open_gateway, connect, ending) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables=2))
    client = await connect(gateway)
    staying = (await client.call("table.open"))["table"]
    for _ in range(5):
        opened = await client.call("table.open")
        await client.call("table.watch", table=opened["table"])
        await client.call(ending, table=opened["table"])
    followed = (await client.call("session.refresh"))["tables"]
    expected = [staying] if ending == "table.leave" else [staying, opened["table"]]
    assert [one["table"] for one in followed] == expected
    await client.call("table.close", table=staying)


async def test_a_closed_table_counts_until_its_events_are_sent(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables=1))
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("table.close")
    watching = await connect(gateway)
    await watching.call("table.watch", table=table.id)
    (membership,) = (
        one.membership
        for one in gateway.context.service.tables.get(table.id).subscribers
        if one.transport is not None and one.membership.is_spectator()
    )
    await watching.until(lambda: membership.is_over())
    membership.subscription.cursor -= 1
    assert await reason_of(watching.call("table.open")) == "too_many_tables"
    membership.subscription.cursor += 1
    await watching.call("table.open")


async def test_a_host_without_a_seat_leaves_and_may_return(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    host = table.host
    assert await host.call("table.leave") == {"version": 2}
    assert (await host.call("session.refresh"))["tables"] == []
    assert await reason_of(host.call("round.open", table=table.id)) == "not_entitled"
    resumed = await host.call("table.resume", table=table.id, token=table.host_token, after=0)
    assert resumed["host"] is True
    await host.call("round.open", entropy="house")


async def test_a_host_with_a_seat_leaves_only_the_seat(gateway, connect) -> None:
    host = await connect(gateway)
    opened = await host.call("table.open")
    await host.call("table.join", table=opened["table"], name="Ada")
    assert await host.call("table.leave") == {"version": 3, "host": True}
    await host.call("round.open", entropy="house")
    await host.until_version(4)
    assert await host.call("table.leave") == {"version": 4}
