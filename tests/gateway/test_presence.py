"""Who is here: what one is told when somebody comes, drops off, comes back, or gets up."""

from __future__ import annotations

import asyncio

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.game.commands import TakeSeat
from dealer.gateway import presence
from dealer.service import Service
from tests.gateway.guest import Refusal, eventually
from tests.gateway.tables import seat_all, shuffled


def here(attendance: dict) -> dict[int, bool]:
    return {seat["seat"]: seat["here"] for seat in attendance["seats"]}


async def told(guest, **wanted) -> dict:
    """Wait for a notice whose seats are here or not as `seat_1=True` says, and give it."""
    seats = {int(name[5:]): there for name, there in wanted.items() if name != "watching"}

    def fits(notice: dict) -> bool:
        watching = wanted.get("watching", notice["watching"])
        return here(notice) == seats and notice["watching"] == watching

    await guest.until(lambda: any(fits(notice) for notice in guest.notices("presence")[-1:]))
    return guest.notices("presence")[-1]


async def test_who_asks_is_told_when_somebody_drops_off_and_comes_back(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    ann, bob = table.players
    begun = gateway.floor.service.now()
    asked = await ann.ask("table.presence")
    assert (asked["table"], here(asked), asked["watching"]) == (table.id, {1: True, 2: True}, 0)
    bob.socket.transport.abort()
    dropped = await told(ann, seat_1=True, seat_2=False)
    assert begun <= dropped["seats"][1]["since"] <= gateway.floor.service.now()
    assert dropped["seats"][0] == asked["seats"][0], "of whom nothing changed nothing is new"
    back = await arrive(gateway)
    await back.ask("table.resume", table=table.id, token=table.tokens[1], after=3)
    again = await told(ann, seat_1=True, seat_2=True)
    assert again["seats"][1]["since"] >= dropped["seats"][1]["since"]
    assert not table.host.notices("presence"), "who never asked is told nothing"
    assert not back.notices("presence")


async def test_seats_that_are_taken_and_given_up_come_and_go(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1)
    assert here(await table.host.ask("table.presence")) == {1: True}
    bob = await arrive(gateway)
    await bob.ask("table.join", table=table.id, name="Bob")
    await told(table.host, seat_1=True, seat_2=True)
    await bob.ask("table.leave")
    await told(table.host, seat_1=True)
    await table.players[0].ask("table.leave")
    assert (await told(table.host))["seats"] == []


async def test_onlookers_are_a_number(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("table.presence")
    carol, dave = await arrive(gateway), await arrive(gateway)
    await carol.ask("table.watch", table=table.id)
    asked = await dave.ask("table.presence", table=table.id)
    assert asked["watching"] == 1, "who only asks who is here does not look on"
    await dave.ask("table.watch")
    await told(table.host, seat_1=True, watching=2)
    await dave.leave()
    notice = await told(table.host, seat_1=True, watching=1)
    assert set(notice) == {"table", "seats", "watching"}
    await carol.ask("table.leave")
    await told(table.host, seat_1=True, watching=0)


async def test_who_only_acts_for_a_seat_is_there(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("table.presence")
    await table.players[0].leave()
    gone = await told(table.host, seat_1=False)
    assert gone["seats"][0]["since"] is not None
    other = await arrive(gateway)
    await other.ask("table.state", table=table.id, token=table.tokens[0])
    await told(table.host, seat_1=True, watching=0)


async def test_a_connection_that_is_superseded_leaves_the_seat_as_it_was(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    ann, bob = table.players
    asked = await ann.ask("table.presence")
    newer = await arrive(gateway)
    await newer.ask("table.resume", table=table.id, token=table.tokens[1], after=3)
    assert await bob.gone() == 4409
    carol = await arrive(gateway)
    await carol.ask("table.watch", table=table.id)
    notice = await told(ann, seat_1=True, seat_2=True, watching=1)
    assert notice["seats"] == asked["seats"]
    assert all(here(one) == {1: True, 2: True} for one in ann.notices("presence"))


async def test_after_a_drain_nothing_is_told(open_gateway, arrive) -> None:
    gateway = await open_gateway()
    table = await seat_all(arrive, gateway, players=3)
    for guest in table.players:
        await guest.ask("table.presence")
    await gateway.drain()
    for guest in table.players:
        assert await guest.gone() == 1012
        assert all(here(one) == {1: True, 2: True, 3: True} for one in guest.notices("presence"))
    later = await open_gateway()
    host = await arrive(later)
    fresh = await host.ask("table.presence", table=table.id, token=table.host_token)
    assert fresh["seats"] == [{"seat": seat, "here": False, "since": None} for seat in (1, 2, 3)]


async def test_changes_that_come_together_are_told_once(gateway, arrive, monkeypatch) -> None:
    table = await seat_all(arrive, gateway, players=4)
    await table.host.ask("table.presence")
    crowd = [await arrive(gateway) for _ in range(8)]
    before = len(table.host.notices("presence"))
    monkeypatch.setattr(presence, "DELAY", 1.0)  # so that all of it falls in one
    await asyncio.gather(*(guest.ask("table.watch", table=table.id) for guest in crowd))
    for guest in table.players[1:]:
        guest.socket.transport.abort()
    await told(table.host, seat_1=True, seat_2=False, seat_3=False, seat_4=False, watching=8)
    assert len(table.host.notices("presence")) - before <= 2


async def test_a_draw_makes_no_notice_and_no_work(gateway, arrive, monkeypatch) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann = table.players[0]
    await ann.ask("table.presence")
    attendance = gateway.floor.pump.presence
    await eventually(lambda: not attendance._timers)
    looked = []
    monkeypatch.setattr(attendance, "changed", looked.append)
    drawn = await ann.ask("deck.draw", count=3)
    await ann.seen(drawn["version"])
    assert looked == []
    joined = await (await arrive(gateway)).ask("table.join", table=table.id, name="Seat Taken")
    await ann.seen(joined["version"])
    assert looked


async def test_only_who_may_see_the_table_is_told(gateway, arrive) -> None:
    host = await arrive(gateway)
    opened = await host.ask("table.open", rules={"join": "invite", "watch": "nobody"})
    table, invite = opened["table"], opened["invite"]
    ann, bob = await arrive(gateway), await arrive(gateway)
    with pytest.raises(Refusal) as caught:
        await ann.ask("table.presence", table=table)
    assert caught.value.reason == "not_entitled"
    joined = await ann.ask("table.join", table=table, name="Ann", invite=invite)
    await bob.ask("table.join", table=table, name="Bob", invite=invite)
    await ann.ask("table.presence")
    await host.ask("table.presence")
    acting, elsewhere = await arrive(gateway), await arrive(gateway)
    await acting.ask("table.presence", table=table, token=joined["token"])
    await elsewhere.ask("table.leave", table=table, token=joined["token"])
    await told(host, seat_2=True)
    before = [len(guest.notices("presence")) for guest in (ann, acting)]
    await bob.leave()
    await told(host, seat_2=False)
    for guest in (ann, acting):
        await guest.ask("ping")
    assert [len(guest.notices("presence")) for guest in (ann, acting)] == before


async def test_nothing_of_it_is_in_the_log(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    version = (await table.host.ask("table.state"))["version"]
    await table.host.ask("table.presence")
    await table.players[1].leave()
    await told(table.host, seat_1=True, seat_2=False)
    assert (await table.host.ask("table.state"))["version"] == version


async def test_what_nobody_is_at_is_forgotten(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("table.presence")
    attendance = gateway.floor.pump.presence
    bystander = await arrive(gateway)
    for guest in (table.host, *table.players):
        await guest.leave()
    other = await bystander.ask("table.open")
    await bystander.ask("table.presence")
    await eventually(lambda: not attendance._timers)
    assert {resident.table_id for resident in attendance._noted} == {other["table"]}
    assert {resident.table_id for resident in attendance._asked} == {other["table"]}


async def test_who_sits_down_at_another_process_has_no_connection_here(
    gateway, arrive, tmp_path
) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("table.presence")
    attendance = gateway.floor.pump.presence
    await eventually(lambda: not attendance._timers)
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url) as log:
        other = Service(log, await open_house(log, key_file(url), fresh=bytes(32)))
        await other.call(await other.load(table.id), TakeSeat("Bob"))
        await other.close()
    await gateway.floor.service.load(table.id)
    notice = await told(table.host, seat_1=True, seat_2=False)
    assert notice["seats"][1]["since"] is None
