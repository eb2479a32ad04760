"""Programs that end and start again: their seat, their events, and a join without an answer."""

from __future__ import annotations

import asyncio

import pytest

from dealer.errors import BadToken
from dealer.game.events import NoteAdded, SeatTaken


async def test_a_program_that_ended_while_it_joined_gets_its_seat(proxy, connect, tmp_path):
    proxy.alter = lambda frame: None if "token" in frame.get("result", {}) else frame
    async with connect(name="Host") as hosts:
        host = await hosts.open()
        async with connect(proxy.url, name="Ada", store=tmp_path / "ada") as hers:
            joining = asyncio.create_task(hers.join(host.id))
            await host.until(lambda table: len(table.seats) == 1)
            joining.cancel()
        async with connect(name="Ada", store=tmp_path / "ada") as hers:
            ada = await hers.join(host.id)
            assert (ada.seat, ada.version) == (1, 2)
            assert hers._store.table(host.id).record["joining"] is None
        assert host.seats == {1: "Ada"}


async def test_a_seat_that_was_freed_meanwhile_is_taken_by_another_command(
    proxy, connect, tmp_path
):
    proxy.alter = lambda frame: None if "token" in frame.get("result", {}) else frame
    async with connect(name="Host") as hosts:
        host = await hosts.open()
        async with connect(proxy.url, name="Ada", store=tmp_path / "ada") as hers:
            joining = asyncio.create_task(hers.join(host.id))
            await host.until(lambda table: len(table.seats) == 1)
            joining.cancel()
        await host.vacate(1)
        async with connect(name="Ada", store=tmp_path / "ada") as hers:
            with pytest.raises(BadToken, match="was left since"):
                await hers.join(host.id)
            assert (await hers.join(host.id)).seat == 1


async def test_resume_continues_and_never_takes_another_seat(connect, tmp_path):
    async with connect(name="Host") as hosts:
        host = await hosts.open()
        async with connect(name="Ada", store=tmp_path / "ada") as hers:
            token = (await hers.join(host.id)).token
        async with connect(store=tmp_path / "ada") as hers:
            assert (await hers.resume(host.id)).seat == 1
        async with connect() as other:
            with pytest.raises(BadToken, match="no seat at that table"):
                await other.resume(host.id)
            assert (await other.resume(host.id, token=token)).seat == 1
        await host.vacate(1)
        async with connect(store=tmp_path / "ada") as hers:
            with pytest.raises(BadToken):
                await hers.resume(host.id)
            with pytest.raises(BadToken, match="no seat at that table"):
                await hers.resume(host.id)
        assert host.seats == {}


async def test_events_reach_the_callback_also_those_that_were_missed(connect, tmp_path):
    got: list = []

    def on_event(table, happened):
        got.append((table, happened.event))

    async with connect(name="Host") as hosts:
        host = await hosts.open()
        async with connect(name="Ada", store=tmp_path / "ada") as hers:
            await hers.join(host.id)
        await host.note("chat", "hello")
        async with connect(store=tmp_path / "ada", on_event=on_event) as hers:
            await hers.resume(host.id)
    kinds = [type(event) for table, event in got if table == host.id]
    assert kinds[1:3] == [SeatTaken, NoteAdded]
