"""The log is put back to an older state under houses that run on, and guests are told so."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dealer
from dealer.errors import HouseCheated
from dealer.eventlog import hints
from dealer.gateway import Gateway, serve
from dealer.service import Service, lookout
from dealer.service.opening import open_service
from tests.gateway.conftest import EAGER, Arrive
from tests.gateway.guest import Guest, Refusal
from tests.gateway.tables import Seated, seat_all, shuffled
from tests.postgres import asked


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'dealer.db'}"
        return
    server = request.getfixturevalue("postgres")
    database = server.database()
    yield server.url(database)
    server.drop(database)


@pytest.fixture(autouse=True)
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks for news by themselves, unless a test says so."""
    monkeypatch.setattr(lookout, "LOOK_SECONDS", getattr(request, "param", 3600))
    monkeypatch.setattr(hints.Hints, "tell", lambda self, tables: None)


@pytest.fixture
async def service(url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(url, house_key=tmp_path / "house.key") as service:
        yield service


@pytest.fixture
async def other(service: Service, url: str, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with (
        open_service(url, house_key=tmp_path / "house.key") as second,
        serve(second, port=0, limits=EAGER) as opened,
    ):
        yield opened


def put_back(url: str, version: int) -> None:
    """The log as it was when its only table stood at this version."""
    to = [
        f"DELETE FROM event WHERE version > {version}",
        f"DELETE FROM checkpoint WHERE size > {version}",
        f"UPDATE stream SET version = {version}, projected = {version}",
    ]
    if version == 0:
        to.append("DELETE FROM stream")
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)) as database:
            for statement in ("DROP TRIGGER IF EXISTS event_refuses_delete", *to):
                database.execute(statement)
            database.commit()
        return
    kept = "ALTER TABLE event {} TRIGGER USER"
    for statement in (kept.format("DISABLE"), *to, kept.format("ENABLE")):
        asked(url, statement)


async def look(*gateways: Gateway) -> None:
    """What each house does once a second anyway."""
    for gateway in gateways:
        service = gateway.floor.service
        await service.lookout.look_at(list(service.memory))


async def told_to_begin_anew(guest: Guest) -> dict[str, Any]:
    """The snapshot without a proof, after which events go on from its version."""
    await guest.until(lambda: guest.notices("snapshot"))
    (snapshot,) = guest.notices("snapshot")
    assert snapshot["reset"] is True
    assert "proof" not in snapshot
    return snapshot


async def everybody(arrive: Arrive, gateway: Gateway, other: Gateway, table: Seated) -> list[Guest]:
    onlookers = [await arrive(one) for one in (gateway, other)]
    for one in onlookers:
        await one.ask("table.watch", table=table.id)
    return [*onlookers, *table.players]


async def test_who_only_listens_is_told_at_each_house(gateway, other, arrive, url) -> None:
    table = await shuffled(arrive, gateway, players=2)
    guests = await everybody(arrive, gateway, other, table)
    before = (await table.players[0].ask("deck.draw"))["version"]
    await look(other)
    for guest in guests:
        await guest.seen(before)
    put_back(url, before - 1)
    await look(gateway, other)
    for guest in guests:
        seen = await told_to_begin_anew(guest)
        assert seen["version"] == before - 1
        assert len(seen["state"]["seats"]) == 2
    drawn = await table.players[1].ask("deck.draw")
    assert drawn["version"] == before
    await look(other)
    for guest in guests:
        await guest.until(lambda guest=guest: guest.versions[-2:] == [before, before])
        assert len(guest.notices("snapshot")) == 1
    assert guests[-1].events[-1]["private"]["card"] == drawn["cards"][0]
    assert not any(guest.closed.done() for guest in guests)


@pytest.mark.parametrize("looks", [0.02], indirect=True)
async def test_each_house_looks_by_itself_again_and_again(gateway, arrive, url) -> None:
    table = await seat_all(arrive, gateway, players=2)
    put_back(url, 2)
    assert (await told_to_begin_anew(table.players[0]))["version"] == 2


@pytest.mark.parametrize("signed", [False, True])
async def test_it_is_noticed_although_the_log_has_grown_past_it(
    gateway, other, arrive, url, signed
) -> None:
    """The one house wrote more than was lost before the other one looked, and perhaps signed it."""
    table = await shuffled(arrive, gateway, players=1)
    guests = await everybody(arrive, gateway, other, table)
    lost = (await table.players[0].ask("deck.draw"))["version"]
    await look(other)
    for guest in guests:
        await guest.seen(lost)
    put_back(url, lost - 1)
    for method in ("deck.shuffle",) if signed else ("deck.cut", "deck.cut"):
        newest = (await table.host.ask(method, **({} if signed else {"at": 7})))["version"]
    assert newest > lost
    await look(other)
    for guest in guests:
        seen = await told_to_begin_anew(guest)
        assert seen["version"] in (lost - 1, lost, newest)
        if seen["version"] < newest:
            await guest.seen(newest)
    assert (await table.players[0].ask("deck.draw"))["version"] == newest + 1


async def test_who_sat_down_in_what_was_lost_sits_no_more(gateway, arrive, url) -> None:
    for rules, told in (({}, True), ({"watch": "nobody"}, False)):
        table = await seat_all(arrive, gateway, players=2, **rules)
        early, late = table.players
        put_back(url, 2)
        await look(gateway)
        await told_to_begin_anew(early)
        if told:
            assert len((await told_to_begin_anew(late))["state"]["seats"]) == 1
        with pytest.raises(Refusal):
            await late.ask("deck.draw")
        assert bool(late.notices("snapshot")) == told


async def test_who_was_at_a_table_that_is_lost_is_sent_to_ask_again(gateway, arrive, url) -> None:
    table = await seat_all(arrive, gateway, players=1)
    put_back(url, 0)
    await look(gateway)
    assert await table.players[0].gone() == 1013
    back = await arrive(gateway)
    with pytest.raises(Refusal) as caught:
        await back.ask("table.resume", table=table.id, token=table.tokens[0], after=1)
    assert caught.value.reason == "unknown_table"


async def test_a_round_that_comes_again_has_its_own_secret(gateway, arrive, url) -> None:
    table = await seat_all(arrive, gateway, players=1)
    for again in (False, True):
        await table.host.ask("round.open", entropy="house")
        await table.host.ask("deck.shuffle")
        drawn = await table.players[0].ask("deck.draw")
        for _ in range(2):  # more events than are kept at hand
            await table.host.ask("deck.shuffle")
        await table.host.ask("round.close")
        newest = (await table.host.ask("round.open", entropy="house"))["version"]
        back = await arrive(gateway)
        await back.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
        await back.seen(newest)
        assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]
        table.players[0] = back
        if not again:
            put_back(url, 2)
            await look(gateway)


async def test_a_player_accuses_the_house(gateway, other, arrive, url) -> None:
    table = await seat_all(arrive, gateway, players=0)
    async with dealer.connect(f"ws://127.0.0.1:{other.port}/ws", name="Ann") as house:
        player = await house.join(table.id)
        await player.until(lambda player: player.version == 2)
        put_back(url, 1)
        await look(other)
        with pytest.raises(HouseCheated, match="went back behind"):
            await player.until(lambda player: player.version > 2)


async def test_a_note_over_what_was_lost_is_not_kept(gateway, service, arrive, url) -> None:
    table = await seat_all(arrive, gateway, players=2)
    resident = await service.load(table.id)
    put_back(url, 2)
    with pytest.raises(Exception, match="put back") as told:
        await service.checkpoint(resident)
    assert "again" in str(told.value)
    assert await service.log.checkpoints(resident.id) == []
    assert (await service.checkpoint(resident))[0] == 2
