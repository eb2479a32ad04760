"""Presence: notices of connections that are opened, lost and resumed, and of seats."""

from __future__ import annotations

import asyncio

from dealer.game.commands import TakeSeat
from dealer.gateway.presence import presence
from tests.gateway.rpc_client import eventually, reason_of
from tests.gateway.tables import seat_and_shuffle, seat_players
from tests.service.bare_service import bare_service


def connected(notice: dict) -> dict[int, bool]:
    """Which seats have a connection."""
    return {seat["seat"]: seat["here"] for seat in notice["seats"]}


async def until_presence(client, **expected) -> dict:
    """Wait for a notice with these seats, such as `seat_1=True` for one with a connection."""
    seats = {int(name[5:]): there for name, there in expected.items() if name != "watching"}

    def matches(notice: dict) -> bool:
        watching = expected.get("watching", notice["watching"])
        return connected(notice) == seats and notice["watching"] == watching

    await client.until(lambda: any(matches(notice) for notice in client.notices("presence")[-1:]))
    return client.notices("presence")[-1]


async def test_a_lost_and_a_resumed_connection_are_pushed(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    ann, bob = table.players
    started = gateway.context.service.now()
    first = await ann.call("table.presence")
    assert (first["table"], connected(first), first["watching"]) == (
        table.id,
        {1: True, 2: True},
        0,
    )
    bob.socket.transport.abort()
    dropped = await until_presence(ann, seat_1=True, seat_2=False)
    assert started <= dropped["seats"][1]["since"] <= gateway.context.service.now()
    assert dropped["seats"][0] == first["seats"][0], "an unchanged seat has an unchanged entry"
    back = await connect(gateway)
    await back.call("table.resume", table=table.id, token=table.tokens[1], after=3)
    again = await until_presence(ann, seat_1=True, seat_2=True)
    assert again["seats"][1]["since"] >= dropped["seats"][1]["since"]
    assert not table.host.notices("presence"), "a client that never called it gets no notices"
    assert not back.notices("presence")


async def test_notices_have_the_seats_that_are_taken(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    assert connected(await table.host.call("table.presence")) == {1: True}
    bob = await connect(gateway)
    await bob.call("table.join", table=table.id, name="Bob")
    await until_presence(table.host, seat_1=True, seat_2=True)
    await bob.call("table.leave")
    await until_presence(table.host, seat_1=True)
    await table.players[0].call("table.leave")
    assert (await until_presence(table.host))["seats"] == []


async def test_spectators_are_counted(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("table.presence")
    carol, dave = await connect(gateway), await connect(gateway)
    await carol.call("table.watch", table=table.id)
    first = await dave.call("table.presence", table=table.id)
    assert first["watching"] == 1, "a client that calls table.presence is not a spectator"
    await dave.call("table.watch")
    await until_presence(table.host, seat_1=True, watching=2)
    await dave.close()
    notice = await until_presence(table.host, seat_1=True, watching=1)
    assert set(notice) == {"table", "seats", "watching"}
    await carol.call("table.leave")
    await until_presence(table.host, seat_1=True, watching=0)


async def test_a_connection_that_only_acts_for_a_seat_is_present(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("table.presence")
    await table.players[0].close()
    absent = await until_presence(table.host, seat_1=False)
    assert absent["seats"][0]["since"] is not None
    other = await connect(gateway)
    await other.call("table.state", table=table.id, token=table.tokens[0])
    await until_presence(table.host, seat_1=True, watching=0)


async def test_a_superseded_connection_leaves_the_seat_present(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    ann, bob = table.players
    first = await ann.call("table.presence")
    newer = await connect(gateway)
    await newer.call("table.resume", table=table.id, token=table.tokens[1], after=3)
    assert await bob.wait_closed() == 4409
    carol = await connect(gateway)
    await carol.call("table.watch", table=table.id)
    notice = await until_presence(ann, seat_1=True, seat_2=True, watching=1)
    assert notice["seats"] == first["seats"]
    assert all(connected(one) == {1: True, 2: True} for one in ann.notices("presence"))


async def test_a_drain_sends_no_presence(open_gateway, connect) -> None:
    gateway = await open_gateway()
    table = await seat_players(connect, gateway, players=3)
    for client in table.players:
        await client.call("table.presence")
    await gateway.drain()
    for client in table.players:
        assert await client.wait_closed() == 1012
        assert all(
            connected(one) == {1: True, 2: True, 3: True} for one in client.notices("presence")
        )
    later = await open_gateway()
    host = await connect(later)
    fresh = await host.call("table.presence", table=table.id, token=table.host_token)
    assert fresh["seats"] == [{"seat": seat, "here": False, "since": None} for seat in (1, 2, 3)]


async def test_simultaneous_changes_are_one_notice(gateway, connect, monkeypatch) -> None:
    table = await seat_players(connect, gateway, players=4)
    await table.host.call("table.presence")
    spectators = [await connect(gateway) for _ in range(8)]
    before = len(table.host.notices("presence"))
    monkeypatch.setattr(presence, "DELAY", 1.0)  # so that all changes are in one interval
    await asyncio.gather(*(client.call("table.watch", table=table.id) for client in spectators))
    for client in table.players[1:]:
        client.socket.transport.abort()
    await until_presence(
        table.host, seat_1=True, seat_2=False, seat_3=False, seat_4=False, watching=8
    )
    assert len(table.host.notices("presence")) - before <= 2


async def test_a_draw_causes_no_check_of_presence(gateway, connect, monkeypatch) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    await ann.call("table.presence")
    attendance = gateway.context.presence
    await eventually(lambda: not attendance._timers)
    checked: list[object] = []
    monkeypatch.setattr(attendance, "changed", checked.append)
    drawn = await ann.call("deck.draw", count=3)
    await ann.until_version(drawn["version"])
    assert checked == []
    joined = await (await connect(gateway)).call("table.join", table=table.id, name="Seat Taken")
    await ann.until_version(joined["version"])
    assert checked


async def test_only_clients_that_may_see_the_table_get_notices(gateway, connect) -> None:
    host = await connect(gateway)
    opened = await host.call("table.open", rules={"join": "invite", "watch": "nobody"})
    table, invite = opened["table"], opened["invite"]
    ann, bob = await connect(gateway), await connect(gateway)
    assert await reason_of(ann.call("table.presence", table=table)) == "not_entitled"
    joined = await ann.call("table.join", table=table, name="Ann", invite=invite)
    await bob.call("table.join", table=table, name="Bob", invite=invite)
    await ann.call("table.presence")
    await host.call("table.presence")
    acting, elsewhere = await connect(gateway), await connect(gateway)
    await acting.call("table.presence", table=table, token=joined["token"])
    await elsewhere.call("table.leave", table=table, token=joined["token"])
    await until_presence(host, seat_2=True)
    before = [len(client.notices("presence")) for client in (ann, acting)]
    await bob.close()
    await until_presence(host, seat_2=False)
    for client in (ann, acting):
        await client.call("ping")
    assert [len(client.notices("presence")) for client in (ann, acting)] == before


async def test_presence_appends_no_events(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    version = (await table.host.call("table.state"))["version"]
    await table.host.call("table.presence")
    await table.players[1].close()
    await until_presence(table.host, seat_1=True, seat_2=False)
    assert (await table.host.call("table.state"))["version"] == version


async def test_a_table_without_connections_is_forgotten(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("table.presence")
    attendance = gateway.context.presence
    bystander = await connect(gateway)
    for client in (table.host, *table.players):
        await client.close()
    other = await bystander.call("table.open")
    await bystander.call("table.presence")
    await eventually(lambda: not attendance._timers)
    assert {live_table.table_id for live_table in attendance._seen} == {other["table"]}


async def test_a_seat_taken_at_another_process_has_no_connection(
    gateway, connect, tmp_path
) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("table.presence")
    attendance = gateway.context.presence
    await eventually(lambda: not attendance._timers)
    async with bare_service(f"sqlite:///{tmp_path / 'dealer.db'}") as other:
        await other.execute(await other.lifecycle.load(table.id), TakeSeat("Bob"))
    await gateway.context.service.lifecycle.load(table.id)
    notice = await until_presence(table.host, seat_1=True, seat_2=False)
    assert notice["seats"][1]["since"] is None
