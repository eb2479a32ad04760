"""The log is rewound to an older state under running nodes: clients are reset to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import Any

import pytest

import dealer
from dealer.errors import DatabaseDamaged, HouseCheated
from dealer.eventlog.postgres.reader import Notifier
from dealer.gateway import Gateway
from dealer.service.nodes import head_poller
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.rpc_client import Refusal, RpcClient, reason_of
from tests.gateway.tables import SeatedTable, seat_and_shuffle, seat_players
from tests.gateway.test_broadcasts import SECONDS, Time, link_of, use, watch
from tests.harness.postgres import query


@pytest.fixture(autouse=True)
def poll_seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes neither poll nor send hints, unless a test sets the interval."""
    monkeypatch.setattr(head_poller, "POLL_SECONDS", getattr(request, "param", 3600))
    monkeypatch.setattr(Notifier, "notify", lambda self, tables: None)


@pytest.fixture
async def gateway(open_node: OpenGateway) -> Gateway:
    return await open_node()


@pytest.fixture
async def other(gateway: Gateway, open_node: OpenGateway) -> Gateway:
    """Another node on the same database."""
    return await open_node()


def rewind(url: str, version: int) -> None:
    """Delete all events after this version."""
    statements = [
        f"DELETE FROM event WHERE version > {version}",
        f"DELETE FROM checkpoint WHERE size > {version}",
        f"UPDATE stream SET version = {version}, projected = {version}",
    ]
    if version == 0:
        statements.append("DELETE FROM stream")
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)) as database:
            for statement in ("DROP TRIGGER IF EXISTS event_refuses_delete", *statements):
                database.execute(statement)
            database.commit()
        return
    trigger = "ALTER TABLE event {} TRIGGER USER"
    for statement in (trigger.format("DISABLE"), *statements, trigger.format("ENABLE")):
        query(url, statement)


async def poll(*gateways: Gateway) -> None:
    """The poll that each node makes once a second otherwise."""
    for gateway in gateways:
        service = gateway.context.service
        await service.head_poller.check(list(service.tables))


async def until_reset(client: RpcClient) -> dict[str, Any]:
    """The snapshot without a proof from whose version the events continue."""
    await client.until(lambda: client.notices("snapshot"))
    (snapshot,) = client.notices("snapshot")
    assert snapshot["reset"] is True
    assert "proof" not in snapshot
    return snapshot


async def players_and_spectators(
    connect: Connect, gateway: Gateway, other: Gateway, table: SeatedTable
) -> list[RpcClient]:
    """The players, after a new spectator at each node."""
    spectators = [await connect(node) for node in (gateway, other)]
    for client in spectators:
        await client.call("table.watch", table=table.id)
    return [*spectators, *table.players]


async def test_subscribers_at_each_node_are_reset(gateway, other, connect, url) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    clients = await players_and_spectators(connect, gateway, other, table)
    before = (await table.players[0].call("deck.draw"))["version"]
    await poll(other)
    for client in clients:
        await client.until_version(before)
    rewind(url, before - 1)
    await poll(gateway, other)
    for client in clients:
        seen = await until_reset(client)
        assert seen["version"] == before - 1
        assert len(seen["state"]["seats"]) == 2
    drawn = await table.players[1].call("deck.draw")
    assert drawn["version"] == before
    await poll(other)
    for client in clients:
        await client.until(lambda client=client: client.versions[-2:] == [before, before])
        assert len(client.notices("snapshot")) == 1
    assert clients[-1].events[-1]["private"]["card"] == drawn["cards"][0]
    assert not any(client.closed.done() for client in clients)


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.parametrize("was_shown", [False, True])
async def test_viewers_of_a_broadcast_are_disconnected_if_what_they_saw_is_lost(
    gateway, other, connect, url, was_shown, grown
) -> None:
    """At each node, before anything else is due; those who saw nothing of it stay."""
    time, nodes = Time(), (gateway, other)
    for node in nodes:
        use(time, node.context.service)
    table = await seat_and_shuffle(connect, gateway, players=1, broadcast=SECONDS)
    link = await link_of(table)
    seen = (await table.players[0].call("deck.draw"))["version"]
    time.pass_(SECONDS)
    lost = (await table.players[0].call("deck.draw"))["version"]
    viewers = [await connect(node) for node in nodes]
    for viewer in viewers:
        assert (await watch(viewer, table, link))["version"] == seen
    rewind(url, seen - 1 if was_shown else seen)
    newest = seen
    if grown:
        for _ in range(3):
            newest = (await table.host.call("deck.cut", at=7))["version"]
        assert newest > lost
    await poll(*nodes)
    if was_shown:
        for broadcasts in (node.context.service.broadcasts for node in nodes):
            for broadcast in tuple(broadcasts.watched.values()):
                with suppress(DatabaseDamaged):  # a request may find it first
                    await broadcasts.advance(broadcast)
        assert [await viewer.wait_closed() for viewer in viewers] == [1013, 1013]
        viewers = [await connect(node) for node in nodes]
    time.pass_(SECONDS)
    for viewer in viewers:
        if was_shown:
            assert await watch(viewer, table, link)
        await viewer.until_version(newest if grown or not was_shown else seen - 1)
    assert viewers[0].events == viewers[1].events


@pytest.mark.parametrize("poll_seconds", [0.02], indirect=True)
async def test_a_node_notices_a_rewind_when_it_polls(gateway, connect, url) -> None:
    table = await seat_players(connect, gateway, players=2)
    rewind(url, 2)
    assert (await until_reset(table.players[0]))["version"] == 2


@pytest.mark.parametrize("signed", [False, True])
async def test_a_rewind_is_noticed_after_the_log_has_grown_again(
    gateway, other, connect, url, signed
) -> None:
    """One node writes more than was lost before the other one polls, and in one case signs it."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    clients = await players_and_spectators(connect, gateway, other, table)
    lost = (await table.players[0].call("deck.draw"))["version"]
    await poll(other)
    for client in clients:
        await client.until_version(lost)
    rewind(url, lost - 1)
    for method in ("deck.shuffle",) if signed else ("deck.cut", "deck.cut"):
        newest = (await table.host.call(method, **({} if signed else {"at": 7})))["version"]
    assert newest > lost
    await poll(other)
    for client in clients:
        seen = await until_reset(client)
        assert seen["version"] in (lost - 1, lost, newest)
        if seen["version"] < newest:
            await client.until_version(newest)
    assert (await table.players[0].call("deck.draw"))["version"] == newest + 1


async def test_a_seat_taken_in_a_lost_event_is_lost(gateway, connect, url) -> None:
    for rules, public in (({}, True), ({"watch": "nobody"}, False)):
        table = await seat_players(connect, gateway, players=2, **rules)
        early, late = table.players
        rewind(url, 2)
        await poll(gateway)
        await until_reset(early)
        if public:
            assert len((await until_reset(late))["state"]["seats"]) == 1
        with pytest.raises(Refusal):
            await late.call("deck.draw")
        assert bool(late.notices("snapshot")) == public


async def test_clients_at_a_lost_table_are_disconnected(gateway, connect, url) -> None:
    table = await seat_players(connect, gateway, players=1)
    rewind(url, 0)
    await poll(gateway)
    assert await table.players[0].wait_closed() == 1013
    back = await connect(gateway)
    refused = back.call("table.resume", table=table.id, token=table.tokens[0], after=1)
    assert await reason_of(refused) == "unknown_table"


async def test_a_round_opened_again_after_a_rewind_has_its_own_secret(
    gateway, connect, url
) -> None:
    table = await seat_players(connect, gateway, players=1)
    for again in (False, True):
        await table.host.call("round.open", entropy="house")
        await table.host.call("deck.shuffle")
        drawn = await table.players[0].call("deck.draw")
        for _ in range(2):  # more events than the ring has
            await table.host.call("deck.shuffle")
        await table.host.call("round.close")
        newest = (await table.host.call("round.open", entropy="house"))["version"]
        back = await connect(gateway)
        await back.call("table.resume", table=table.id, token=table.tokens[0], after=0)
        await back.until_version(newest)
        assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]
        table.players[0] = back
        if not again:
            rewind(url, 2)
            await poll(gateway)


async def test_a_client_accuses_the_house_of_a_rewind(gateway, other, connect, url) -> None:
    table = await seat_players(connect, gateway, players=0)
    async with dealer.connect(f"ws://127.0.0.1:{other.port}/ws", name="Ann") as client:
        player = await client.join(table.id)
        await player.until(lambda player: player.version == 2)
        rewind(url, 1)
        await poll(other)
        with pytest.raises(HouseCheated, match="showed an older log"):
            await player.until(lambda player: player.version > 2)


async def test_a_checkpoint_of_lost_events_is_not_stored(gateway, connect, url) -> None:
    table, service = await seat_players(connect, gateway, players=2), gateway.context.service
    live_table = await service.lifecycle.load(table.id)
    rewind(url, 2)
    with pytest.raises(Exception, match="rewound") as caught:
        await service.checkpoints.checkpoint(live_table)
    assert "again" in str(caught.value)
    assert await service.log.checkpoints(live_table.id) == []
    assert (await service.checkpoints.checkpoint(live_table))[0] == 2
