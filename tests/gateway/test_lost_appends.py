"""Seats that are taken or left in appends that are lost, or that another process forestalls."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from dealer.errors import DatabaseError
from dealer.game.commands import Actor, AddNote, Draw, TakeSeat
from tests.gateway.rpc_client import Refusal, eventually
from tests.gateway.tables import seat_and_shuffle, seat_players
from tests.gateway.test_views import codes_in
from tests.harness.service_keys import add_key, with_key
from tests.service.bare_service import bare_service

NOTE = {"kind": "chat", "text": "still here"}


@contextmanager
def held_appends(service, monkeypatch) -> Iterator[list[Any]]:
    """The appends of events that are submitted in the block; none of them is made."""
    queued: list[Any] = []
    submit = service.log.writer.submit

    def hold(append: Any) -> None:
        if append.rows:
            queued.append(append)
        else:  # only a checkpoint
            submit(append)

    with monkeypatch.context() as patch:
        patch.setattr(service.log.writer, "submit", hold)
        yield queued


@contextmanager
def lost_appends(service, monkeypatch) -> Iterator[list[Any]]:
    """The same; after the block they are reported as failed."""
    with held_appends(service, monkeypatch) as queued:
        yield queued
    for append in queued:
        append.on_result(append, DatabaseError("the disk failed"))


async def up_to_date(live_table: Any) -> None:
    await eventually(lambda: live_table.table.version == live_table.committed)


async def test_a_token_is_not_refused_because_of_a_leave_that_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    """Clients forget a token that was refused, and would lose a seat that they still have."""
    table = await seat_players(connect, gateway, players=1)
    live_table, back = service.tables.get(table.id), await connect(gateway)
    with lost_appends(service, monkeypatch) as queued:
        leaving = table.players[0].send("table.leave")
        await eventually(lambda: queued)
        resuming = back.send("table.resume", table=table.id, token=table.tokens[0], after=0)
        await eventually(lambda: live_table.commit_waiters or resuming.done())
    assert (await resuming)["seat"] == 1
    leaving.cancel()


async def test_a_connection_keeps_its_seat_if_its_own_leave_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    table = await seat_players(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    with lost_appends(service, monkeypatch) as queued:
        leaving = player.send("table.leave")
        await eventually(lambda: queued)
        (subscription,) = (one for one in live_table.subscribers if one.viewer is not None)
        assert (
            subscription.membership.seat.refresh() is None
        )  # as who is present is computed meanwhile
    with pytest.raises(Refusal, match="again"):
        await leaving
    await up_to_date(live_table)
    assert (await player.call("table.note", **NOTE))["version"] == 3


async def test_a_player_keeps_the_cards_whose_removal_is_lost_during_a_resume(
    gateway, service, connect, monkeypatch
) -> None:
    """The removal is decided after the resume of this table, before all tables are answered."""
    other = await seat_players(connect, gateway, players=1)
    table = await seat_and_shuffle(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    asked, go_on = asyncio.Event(), asyncio.Event()
    head = service.checkpoints.head

    async def slow_head(of: Any) -> Any:
        if of is not live_table:
            asked.set()
            await go_on.wait()
        return await head(of)

    monkeypatch.setattr(service.checkpoints, "head", slow_head)
    tokens = [
        {"table": one.id, "token": one.tokens[0], "after": service.tables.get(one.id).committed}
        for one in (table, other)
    ]
    resuming = player.send("session.hello", tokens=tokens)
    await asked.wait()
    with lost_appends(service, monkeypatch) as queued:
        vacating = table.host.send("seat.vacate", seat=1, reason="away")
        await eventually(lambda: queued)
        go_on.set()
        assert [one["seat"] for one in (await resuming)["tables"]] == [1, 1]
    with pytest.raises(Refusal, match="again"):
        await vacating
    await up_to_date(live_table)
    drawn = await player.call("deck.draw", table=table.id)
    await player.until_version(drawn["version"])
    assert player.events[-1]["private"]["card"] == drawn["cards"][0]


async def test_a_token_acts_for_no_seat_of_a_move_that_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    """Another player takes that seat at the version that the move would have had."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    other, carol = await connect(gateway), await connect(gateway)
    with lost_appends(service, monkeypatch) as queued:
        moving = player.send("seat.move", to=2)
        await eventually(lambda: queued)
        moved_at = live_table.table.seats[2].taken_at
        noting = other.send("table.note", table=table.id, token=table.tokens[0], **NOTE)
        await eventually(lambda: live_table.commit_waiters or len(queued) > 1)
    with pytest.raises(Refusal, match="again"):
        await moving
    await up_to_date(live_table)
    with suppress(Refusal):  # to be sent again
        await noting
    while live_table.committed < moved_at - 1:
        await table.host.call("table.note", **NOTE)
    await carol.call("table.join", table=table.id, name="Carol", seat=2)
    assert live_table.table.seats[2].taken_at == moved_at
    await other.call("deck.draw")
    assert "hand:2" not in live_table.table.round.stacks


async def test_a_resume_behind_a_move_that_is_lost_keeps_the_cards(
    gateway, service, connect, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    with lost_appends(service, monkeypatch) as queued:
        moving = player.send("seat.move", to=2)
        resume = {"token": table.tokens[0], "after": live_table.committed}
        resuming = player.send("table.resume", table=table.id, **resume)
        await eventually(lambda: queued and (live_table.commit_waiters or resuming.done()))
    with pytest.raises(Refusal, match="again"):
        await moving
    assert (await resuming)["seat"] == 1
    await up_to_date(live_table)
    drawn = await player.call("deck.draw")
    await player.until_version(drawn["version"])
    assert player.events[-1]["private"]["card"] == drawn["cards"][0]


async def test_what_follows_a_move_is_not_done_for_the_player_who_was_quicker(
    gateway, service, connect, monkeypatch, tmp_path
) -> None:
    """At another process Carol takes the seat, at the version that the move would have had."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    async with bare_service(f"sqlite:///{tmp_path / 'dealer.db'}") as other:
        there, submit = await other.lifecycle.load(table.id), service.log.writer.submit
        with held_appends(service, monkeypatch) as queued:
            moving = player.send("seat.move", to=2)
            drawing = player.send("deck.draw")
            resume = {"token": table.tokens[0], "after": live_table.committed}
            resuming = player.send("table.resume", table=table.id, **resume)
            await eventually(lambda: queued)
            moved_at = live_table.table.seats[2].taken_at
            await eventually(lambda: live_table.commit_waiters or len(queued) > 1)
        while there.committed < moved_at - 1:
            await other.execute(there, AddNote(Actor(seat=1), "chat", "x"))
        await other.execute(there, TakeSeat("Carol", 2))
        assert there.table.seats[2].taken_at == moved_at
        for append in queued:
            submit(append)
        with pytest.raises(Refusal):
            await moving
        await drawing
        assert (await resuming)["seat"] == 1
        assert "hand:2" not in live_table.table.round.stacks
        mine = codes_in(player.frames)
        done = await other.execute(there, Draw(Actor(seat=2)))
        await player.call("table.note", **NOTE)
        await player.until_version(done.version)
        assert codes_in(player.frames) == mine


async def test_a_repeated_join_is_not_refused_because_of_a_removal_that_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    """Clients forget a command that was refused, and would lose a seat that they have."""
    host, ada, again = await connect(gateway), await connect(gateway), await connect(gateway)
    table = (await host.call("table.open", seats=4))["table"]
    join = {"table": table, "name": "Ada", "cmd": str(uuid.uuid4())}
    await ada.call("table.join", **join)
    live_table = service.tables.get(table)
    with lost_appends(service, monkeypatch) as queued:
        vacating = host.send("seat.vacate", seat=1, reason="away")
        await eventually(lambda: queued)
        joining = again.send("table.join", **join)
        await eventually(lambda: live_table.commit_waiters or joining.done())
    with pytest.raises(Refusal, match="again"):
        await vacating
    assert (await joining)["seat"] == 1


async def test_a_ticket_gives_no_seat_of_a_move_that_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    """Another player takes that seat at the version that the move would have had."""
    shop = await connect(**with_key(await add_key(service)))
    ada, again, later = await connect(), await connect(), await connect()
    carol = await connect()
    table = (await shop.call("table.open", seats=4))["table"]
    of_ada = {"table": table, "name": "Ada", "subject": "ada"}
    ticket = (await shop.call("seat.ticket", **of_ada))["ticket"]
    join = {"table": table, "ticket": ticket, "cmd": str(uuid.uuid4())}
    await ada.call("table.join", **join)
    live_table = service.tables.get(table)
    with lost_appends(service, monkeypatch) as queued:
        moving = ada.send("seat.move", to=2)
        await eventually(lambda: queued)
        moved_at = live_table.table.seats[2].taken_at
        joining = again.send("table.join", **join)
        await eventually(lambda: live_table.commit_waiters or joining.done())
    with pytest.raises(Refusal, match="again"):
        await moving
    assert (await joining)["seat"] == 1
    while live_table.committed < moved_at - 1:
        await again.call("table.note", **NOTE)
    of_carol = await shop.call("seat.ticket", table=table, name="Carol")
    assert (await carol.call("table.join", table=table, ticket=of_carol["ticket"]))["seat"] == 2
    assert live_table.table.seats[2].taken_at == moved_at
    ticket = (await shop.call("seat.ticket", **of_ada))["ticket"]
    assert (await later.call("table.join", table=table, ticket=ticket))["seat"] == 1


async def test_presence_and_role_do_not_follow_a_move_that_is_lost(
    gateway, service, connect, monkeypatch
) -> None:
    table = await seat_players(connect, gateway, players=1)
    (player,) = table.players
    watcher = await connect(gateway)
    await watcher.call("table.watch", table=table.id)
    await watcher.call("table.presence", table=table.id)
    with lost_appends(service, monkeypatch) as queued:
        moving = player.send("seat.move", to=2)
        await eventually(lambda: queued)
        refreshing = player.send("session.refresh")
        watching = (await connect(gateway)).send("table.watch", table=table.id)
        await eventually(lambda: watcher.notices("presence"))
        assert not refreshing.done()
    with pytest.raises(Refusal, match="again"):
        await moving
    await watching
    assert [one["seat"] for one in (await refreshing)["tables"]] == [1]

    def is_here() -> bool:
        seats = watcher.notices("presence")[-1]["seats"]
        return [(one["seat"], one["here"]) for one in seats] == [(1, True)]

    await eventually(is_here)


async def test_a_command_behind_a_move_is_to_be_sent_again_where_both_waited_for_a_reload(
    gateway, service, connect
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (player,), live_table = table.players, service.tables.get(table.id)
    live_table.begin_append()  # another append of the table was lost, and one is still under way
    live_table.begin_reload()
    moving, drawing = player.send("seat.move", to=2), player.send("deck.draw")
    await eventually(lambda: len(live_table.pending_retries) > 1)
    live_table.in_flight -= 1
    service.lifecycle.reload_if_due(live_table)
    await moving
    with pytest.raises(Refusal, match="send this again") as caught:
        await drawing
    assert caught.value.reason == "conflict"
    await player.call("deck.draw")
    assert len(live_table.table.round.cards("hand:2")) == 1
