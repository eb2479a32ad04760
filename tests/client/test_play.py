"""Clients of a real server over real sockets: playing, losing the connection, resuming."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import (
    BadRequest,
    ConfigurationError,
    DealerError,
    HouseCheated,
    HouseUnreachable,
)
from dealer.game.state import copy_table
from dealer.proof.checkpoint import Cosigner


async def test_a_host_who_lost_the_seat_while_away_stays_host(connect, proxy, real_server):
    async with connect(proxy.url, name="Ada") as hers, connect() as elsewhere:
        ada = await hers.join(await hers.open())
        token = hers._store.table(ada.id).record["token"]
        onlooker = await elsewhere.watch(ada.id)
        proxy.alter_request = lambda frame: None if frame["method"] == "table.resume" else frame
        proxy.cut()
        leave = {"table": ada.id, "token": token}
        asking = elsewhere._connection.ask("table.leave", leave, table=None, changes=True)
        await asyncio.gather(asking, return_exceptions=True)
        await onlooker.until(lambda table: not table.seats)
        proxy.alter_request = lambda frame: frame
        proxy.cut()
        await ada.until(lambda table: not table.seats)
        assert ada.seat is None
        assert await ada.round_open() == 1


async def test_waiting_ends_after_its_timeout(connect):
    async with connect(name="Ada") as house:
        ada = await house.join(await house.open())
        before = ada.version
        with pytest.raises(TimeoutError, match=r"^The condition was not true within 0.01 s\. "):
            await ada.until(lambda table: table.version < before, timeout=0.01)
        waiting = asyncio.create_task(ada.until(lambda table: table.round == 1, timeout=20))
        await ada.round_open()
        assert await waiting is ada


async def test_joining_while_the_table_is_left(connect, monkeypatch):
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        ask = hers._connection.ask

        def leave_first(method, *arguments, **options):
            if method == "table.join":  # an earlier leave is answered before the join
                watching._session.end(None)
                hers._follow(bob.id, key=None)  # as another join does
            return ask(method, *arguments, **options)

        monkeypatch.setattr(hers._connection, "ask", leave_first)
        async with asyncio.timeout(20):
            ada = await hers.join(bob.id)
            await his.join(bob.id)
            await ada.until(lambda table: len(table.seats) == 2)


async def test_answers_to_a_leave_and_a_join_come_together(connect, monkeypatch):
    """The client reads both before the caller of `leave` goes on."""
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        connection, held = hers._connection, []
        process = connection._answered

        def process_together(frame):
            method = connection._requests[frame["id"]].method
            if method not in ("table.leave", "table.join"):
                process(frame)
                return
            held.append(frame)
            if method == "table.join":
                for one in held:
                    process(one)

        monkeypatch.setattr(connection, "_answered", process_together)
        async with asyncio.timeout(20):
            _, ada = await asyncio.gather(watching.leave(), hers.join(bob.id))
            await his.join(bob.id)
            await ada.until(lambda table: len(table.seats) == 2)
        assert len(held) == 2
        assert ada.seat == 1


async def test_a_store_that_cannot_be_written_fails_only_the_request(connect, monkeypatch):
    async with connect(name="Ada") as house:
        table = await house.join(await house.open())

        def full(**facts):
            raise ConfigurationError("seat.json cannot be written")

        monkeypatch.setattr(table._session.store, "update", full)
        with pytest.raises(ConfigurationError, match="cannot be written"):
            await table.leave()
        await house.open()


async def test_watching_while_the_table_is_left(connect):
    """Nothing happens between: the answer has the version that the session had."""
    async with connect(name="Bob") as his, connect(name="Ada") as hers:
        bob = await his.open()
        watching = await hers.watch(bob.id)
        leaving = asyncio.create_task(watching.leave())
        again = asyncio.create_task(hers.watch(bob.id))
        await leaving
        async with asyncio.timeout(20):
            table = await again
            await his.join(bob.id)
            await table.until(lambda table: len(table.seats) == 1)


async def test_an_ended_session_does_not_end_the_one_after_it(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await bob.leave()
        again = await his.join(ada.id)
        bob._session.end(None)  # as a late answer to a request of the first session does
        await ada.note("chat", "hello")
        async with asyncio.timeout(20):
            await again.until(lambda table: table.version >= ada.version)
            await again.note("chat", "here")


async def test_an_answer_to_a_join_that_comes_after_the_seat_was_left(connect, monkeypatch):
    """The answer to a repeated join shows the table as it was then, which is not an older log."""
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        joined: dict[str, Any] = {}

        async def join(method, *arguments, answered, **options):
            if joined:
                await bob.leave()
                answered(joined)
            else:
                joined.update(await ask(method, *arguments, answered=answered, **options))
            return joined

        def kept(method, *arguments, **options):
            return (join if method == "table.join" else ask)(method, *arguments, **options)

        async with connect(name="Bob") as his:
            ask = his._connection.ask
            monkeypatch.setattr(his._connection, "ask", kept)
            bob = await his.join(ada.id)
            await ada.round_open()
            await ada.shuffle()
            await bob.until(lambda table: table.shuffled)
            with pytest.raises(DealerError, match="left this table"):
                await his.join(ada.id)
            monkeypatch.undo()
            again = await his.join(ada.id)
            assert again.seats == {1: "Ada", 2: "Bob"}


async def test_a_host_without_a_seat_comes_back(connect, tmp_path):
    async with connect(store=tmp_path) as house:
        table = await house.open(rules={"preset": "dealer"})
    async with connect(store=tmp_path) as house:
        again = await house.watch(table.id)
        assert await again.round_open() == 1


async def test_a_table_id_that_cannot_be_one_is_refused_before_it_is_used(connect, tmp_path):
    folder = tmp_path / "store"
    async with connect(store=folder) as house:
        for wrong in ("nonsense", "", "../" * 10 + "aa", "0199F3C2" * 4):
            for follow in (house.join, house.watch):
                with pytest.raises(BadRequest, match="32 hexadecimal digits"):
                    await follow(wrong)
    assert not folder.exists()


async def test_a_connection_that_was_not_opened_says_so(connect):
    house = connect()
    with pytest.raises(ConfigurationError, match="async with connect"):
        await house.open()


async def test_the_cosigning_key_can_be_given_or_turned_off(connect):
    cosigner = Cosigner(bytes(range(32)))
    async with connect(name="Ada", cosigner=cosigner) as hers, connect(cosigner=False) as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        assert bob.state.seats[1].key == cosigner.public_key
        assert bob.state.seats[2].key is None
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await ada.until(lambda table: table.cosigned == table.version)
        assert bob.cosigned == 0
        with pytest.raises(ConfigurationError, match="does not cosign"):
            await bob.cosign(bob.checkpoints[-1])


async def test_an_unreachable_address_is_reported(connect):
    with pytest.raises(HouseUnreachable, match="does not answer"):
        await connect("ws://127.0.0.1:9/ws").__aenter__()


@pytest.mark.parametrize("path", ["", "/", "/nowhere", "/tables", "/rpc"])
async def test_an_address_without_a_websocket_is_to_be_corrected(connect, real_server, path):
    base = real_server.url.removesuffix("/ws")
    bare = base.removeprefix("ws://")
    for url in (f"{base}{path}", f"http://{bare}{path}", f"{bare}{path}"):
        with pytest.raises(ConfigurationError, match="There is no WebSocket at") as wrong:
            await connect(url).__aenter__()
        assert f" {url}: its address is like ws://127.0.0.1:8080/ws" in str(wrong.value)


@pytest.mark.parametrize("name", ["books", "hand:0", "pile:", "hand:Bob", ""])
async def test_a_name_of_no_stack_is_refused(connect, name):
    async with connect(name="Ada") as house:
        table = await house.open()
        assert table.stack("pile:books") == table.stack("hand:7") == []
        with pytest.raises(BadRequest, match="A stack is deck, hand:<seat> or pile:<name>"):
            table.stack(name)


def changed_private(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if "private" in event:
            event["private"]["card"] = "As" if event["private"]["card"] != "As" else "Ks"
    return frame


def changed_leaf(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "CardDrawn":
            event["at"] += 1
    return frame


def changed_secret(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "RoundClosed":
            event["public"]["secret"] = "00" * (len(event["public"]["secret"]) // 2)
    return frame


def changed_swaps(frame):
    for event in frame["params"].get("list", [frame["params"]]):
        if event["type"] == "CardsSwapped":
            event["commit"] = "00" * 32
    return frame


@pytest.mark.parametrize("alter", [changed_private, changed_leaf, changed_secret, changed_swaps])
async def test_a_client_leaves_a_house_that_cheats(connect, proxy, tmp_path, alter):
    def change(frame):
        return alter(frame) if frame.get("method") in ("event", "events") else frame

    async def play(table):
        await table.round_open()
        await table.shuffle()
        await table.draw(2)
        await table.round_close()

    proxy.alter = change
    folder = tmp_path / "ada"
    async with connect(proxy.url, name="Ada", store=folder) as house:
        table = await house.join(await house.open())
        events = table.events()
        with pytest.raises(HouseCheated, match=r"evidence is in .*evidence-1\.json"):
            await play(table)
        assert table.evidence is not None
        with pytest.raises(HouseCheated):
            [event async for event in events]
        with pytest.raises(HouseCheated):
            await table.draw(1)
        with pytest.raises(HouseCheated):
            await house.join(table.id)
    async with connect(name="Ada", store=folder) as house:
        with pytest.raises(HouseCheated, match="was left because"):
            await house.join(table.id)


async def test_presence_is_requested_and_its_notifications_are_ignored(connect):
    async with connect(name="Ada") as hers:
        ada = await hers.join(await hers.open())
        async with connect(name="Bob") as his:
            await his.join(ada.id)
            await ada.until(lambda table: len(table.seats) == 2)
            answer = await ada.presence()
            assert [seat["here"] for seat in answer["seats"]] == [True, True]
            handler, left = hers._connection.handlers[ada.id], asyncio.Event()
            notified = handler.notified

            def listening(method, params):
                notified(method, params)
                if method == "presence" and not params["seats"][1]["here"]:
                    left.set()

            handler.notified = listening
        async with asyncio.timeout(30):
            await left.wait()
        await ada.round_open(entropy="house")
        await ada.shuffle()
        assert await ada.draw(1) == ada.hand


async def test_an_earlier_version_as_this_player_saw_it(connect):
    async with connect(name="Ada") as hers, connect(name="Bob") as his:
        ada = await hers.join(await hers.open())
        bob = await his.join(ada.id)
        await ada.round_open()
        await ada.shuffle()
        drawn = await ada.draw(2)
        then, version = copy_table(ada.state), ada.version
        await ada.play(drawn[0])
        past = await ada.state_at(version)
        assert then.round is not None
        assert (past.version, past.round.stacks) == (version, then.round.stacks)
        assert [past.round.face(card) for card in past.round.cards("hand:1")] == drawn
        his_view = await bob.state_at(version)
        assert [his_view.round.face(card) for card in his_view.round.cards("hand:1")] == [None] * 2
        assert his_view.seats[1].name == "Ada"
        assert (await ada.state_at(1)).round is None
        with pytest.raises(BadRequest, match="no version"):
            await ada.state_at(ada.version + 1)
