"""A request that is sent again gets the answer of the first one, and has no other effect."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.errors import Unavailable
from dealer.gateway.server import Gateway
from dealer.service import Service
from dealer.service.reading.checkpoints import Checkpoints
from tests.gateway.conftest import Connect
from tests.gateway.rpc_client import eventually, reason_of, refusal
from tests.gateway.tables import seat_and_shuffle, seat_players
from tests.gateway.test_lost_appends import held_appends, lost_appends

LONG = "c" * 40
"""A command id that cannot be guessed, and so counts on every connection."""


async def test_a_command_sent_twice_at_once_pushes_its_events_once(
    gateway: Gateway, connect: Connect
) -> None:
    table = await seat_and_shuffle(connect, gateway)
    ann, bob = table.players
    first, second = ann.send("deck.draw", cmd="a"), ann.send("deck.draw", cmd="a")
    drawn = await first
    assert await second == drawn
    for player in (ann, bob):
        await player.until_version(drawn["version"])
        await player.call("ping")
        assert player.versions.count(drawn["version"]) == 1


async def test_who_repeats_another_connections_command_sees_what_is_its_own(
    gateway: Gateway, connect: Connect, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with a seat deals to it; the host's other connection, without one, sends the same."""
    table = await seat_players(connect, gateway, players=1)
    seated, other = table.host, await connect(gateway)
    seat = (await seated.call("table.join", table=table.id, name="Host"))["seat"]
    await seated.call("round.open", entropy="house")
    await seated.call("deck.shuffle")
    await other.call("table.resume", table=table.id, token=table.host_token, after=0)
    with held_appends(service, monkeypatch) as held:
        dealt = seated.send("deck.deal", seats=[seat], each=1, cmd="d")
        await eventually(lambda: held)
        repeated = other.send("deck.deal", seats=[seat], each=1, cmd="d")
        await eventually(lambda: held[0].waiters)
    for append in held:
        service.log.writer.submit(append)
    answer = await dealt
    assert await repeated == answer
    for client, cards in ((seated, 1), (other, 0)):
        await client.until_version(answer["version"])
        await client.call("ping")
        mine = [event for event in client.events if event["version"] == answer["version"]]
        assert [("private" in event) for event in mine] == [bool(cards)]


async def test_a_host_who_leaves_the_seat_twice_keeps_the_table(
    gateway: Gateway, connect: Connect
) -> None:
    host = await connect(gateway)
    table = (await host.call("table.open"))["table"]
    version = (await host.call("table.join", table=table, name="Ann"))["version"]
    left = await host.call("table.leave", cmd="L", expect=version)
    assert left == {"version": version + 1, "host": True}
    assert await host.call("table.leave", cmd="L", expect=version) == left
    assert (await host.call("table.state"))["table"] == table
    await host.call("table.join", table=table, name="Ann")
    again = await host.call("table.leave", cmd="L")  # of another seat: another command
    assert again == {"version": version + 3, "host": True}
    assert (await host.call("table.state"))["table"] == table


async def test_a_join_that_expects_a_version_is_repeated_on_another_connection(
    gateway: Gateway, connect: Connect
) -> None:
    opened = await (await connect(gateway)).call("table.open")
    join = {"table": opened["table"], "name": "Ann", "cmd": LONG, "expect": opened["version"]}
    first = await (await connect(gateway)).call("table.join", **join)
    again = await (await connect(gateway)).call("table.join", **join)
    assert (again["seat"], again["token"]) == (first["seat"], first["token"])
    late = await connect(gateway)
    assert await reason_of(late.call("table.join", **join | {"cmd": LONG[1:]})) == "conflict"


@pytest.mark.parametrize("error", [Unavailable("The log cannot be read."), KeyError("a bug")])
@pytest.mark.parametrize("before", ["nothing", "watching", "host"])
async def test_a_join_whose_answer_failed_is_repeated_on_the_same_connection(
    gateway: Gateway,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    error: Exception,
) -> None:
    host, player = await connect(gateway), await connect(gateway)
    table = (await host.call("table.open"))["table"]
    if before == "watching":
        await player.call("table.watch", table=table)
    elif before == "host":
        player = host

    async def fail(*_: Any) -> None:
        raise error

    join = {"table": table, "name": "Ann", "cmd": LONG}
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "snapshot", fail)
        refused = await refusal(player.call("table.join", **join))
    assert (refused.reason or refused.code) in ("unavailable", -32603)
    assert (await player.call("table.join", **join))["seat"] == 1
    assert (await player.call("table.note", table=table, kind="chat", text="Hello"))["version"] == 3
    if before == "host":  # as it was before the join that failed
        assert (await player.call("round.open", entropy="house"))["version"] == 4


async def test_a_repeated_command_is_not_charged_as_a_write(
    gateway: Gateway, connect: Connect, service: Service
) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open", entropy="house")
    live_table = service.tables.get(table.id)
    assert live_table is not None
    subscription, *_ = live_table.subscribers
    budget = subscription.transport.budget.written  # of the address, so of both connections
    budget.rate, budget.burst, budget.tokens = 0.0, 1e12, 1e9
    await table.host.call("deck.shuffle", cmd="s")
    after = budget.tokens
    assert after < 1e9
    await table.host.call("deck.shuffle", cmd="s")
    assert budget.tokens == after


async def test_presence_goes_on_after_a_leave_that_was_lost(
    gateway: Gateway, connect: Connect, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is under way its player, the only one who follows, may not watch the table."""
    host = await connect(gateway)
    opened = await host.call("table.open", rules={"watch": "nobody"})
    table, other = opened["table"], await connect(gateway)
    ann = await connect(gateway)
    await ann.call("table.join", table=table, name="Ann")
    await ann.call("table.presence")
    live_table = service.tables.get(table)
    assert live_table is not None
    with lost_appends(service, monkeypatch) as lost:
        leaving = ann.send("table.leave")
        await eventually(lambda: lost)
        resumed = other.send("table.resume", table=table, token=opened["host_token"], after=0)
        await eventually(lambda: len(live_table.subscribers) == 3)
        await eventually(lambda: not gateway.context.presence._timers)
    await reason_of(leaving)
    await resumed
    known = len(ann.notices("presence"))
    await (await connect(gateway)).call("table.join", table=table, name="Bob")

    def both_seats() -> list[Any]:
        return [one for one in ann.notices("presence")[known:] if len(one["seats"]) == 2]

    await eventually(both_seats)
