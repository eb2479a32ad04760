"""What an agent's tools do, at a real table."""

from __future__ import annotations

import asyncio
import json

import pytest

import dealer
from dealer.errors import BadRequest, BadToken, ConfigurationError, NotEntitled
from dealer.mcp import views
from dealer.mcp.seats import Seats
from dealer.mcp.server import make_server
from tests.harness.own_gateway import own_gateway

TOOLS = {"list_tables", "sit", "look", "wait", "draw", "play", "note", "leave", "evidence"}


@pytest.fixture
async def server(tmp_path):
    async with own_gateway(tmp_path) as url:
        yield url


@pytest.fixture
async def ada(server):
    """A player with a seat and the host's rights, at a table of four."""
    async with dealer.connect(server, name="Ada") as house:
        yield await house.join(await house.open(seats=4, name="Whist"))


@pytest.fixture
async def seats(server, tmp_path):
    agent = Seats(server, tmp_path / "agent", name="Agent")
    yield agent
    await agent.close()


async def start(ada, seats):
    await seats.sit(ada.id)
    await ada.until(lambda table: len(table.seats) == 2)
    await ada.round_open()
    await ada.shuffle()


async def test_an_agent_lists_sits_and_is_a_bot(ada, seats):
    while not (listed := await seats.list_tables())["tables"]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert [one["table"] for one in listed["tables"]] == [ada.id]
    assert listed["current"] is None
    view = await seats.sit(ada.id)
    assert (view["my_seat"], view["name"], view["round"]) == (2, "Whist", None)
    await ada.until(lambda table: len(table.seats) == 2)
    assert ada.state.seats[2].bot
    assert (await seats.list_tables())["current"] == ada.id


async def test_it_draws_plays_and_adds_notes(ada, seats):
    await start(ada, seats)
    drawn = (await seats.draw(3))["drawn"]
    assert (await seats.look())["my_hand"] == drawn
    await seats.play([drawn[0]])
    await seats.play([drawn[1]], pile="discard", face_up=False)
    await seats.note("turn", "1")
    await ada.until(lambda table: table.markers.turn == 1)
    assert ada.piles["table"] == [drawn[0]]
    assert ada.piles["discard"] == ["??"]
    assert "pile" in (await seats.look())["i_may"]
    assert (await seats.draw(1, pile="table"))["drawn"] == [drawn[0]]


async def test_it_sees_what_its_seat_may_see(ada, seats):
    """Nothing of another hand is in what the tools return, nor in the state behind them."""
    await start(ada, seats)
    hers = await ada.draw(5)
    own = (await seats.draw(2))["drawn"]
    answer = await seats.wait(seconds=20)
    assert answer["hands"] == {"1": ["??"] * 5}
    given = json.dumps(answer)
    assert not [card for card in hers if f'"{card}"' in given]
    faces = seats._tables[ada.id].state.round.faces
    assert sorted(face for face in faces if face is not None) == sorted(own)


async def test_wait_gives_the_events_since_the_last_answer(ada, seats):
    await start(ada, seats)
    assert [one["event"] for one in (await seats.wait())["events"]][:2] == [
        "RoundOpened",
        "ShuffleStarted",
    ]
    waiting = asyncio.create_task(seats.wait(seconds=20))
    await ada.note("chat", "hello")
    answer = await waiting
    (event,) = answer["events"]
    assert (event["event"], event["seat"], event["text"]) == ("NoteAdded", 1, "hello")
    assert (await seats.wait(seconds=0))["events"] == []
    assert len((await seats.wait(seconds=0, after=event["version"] - 1))["events"]) == 1


async def test_wait_returns_at_once_at_the_own_turn(ada, seats):
    await start(ada, seats)
    await ada.note("turn", "2")
    while not (await seats.wait(seconds=20))["my_turn"]:
        pass
    assert (await seats.wait(seconds=300))["events"] == []


async def test_another_process_continues_in_the_seat(ada, seats, server, tmp_path):
    await start(ada, seats)
    drawn = (await seats.draw(2))["drawn"]
    await seats.wait(seconds=0)
    await seats.close()
    await ada.note("chat", "while you were away")
    again = Seats(server, tmp_path / "agent", name="Agent")
    try:
        answer = await again.wait(seconds=20)
        assert answer["my_hand"] == drawn
        assert [one["text"] for one in answer["events"]] == ["while you were away"]
        assert (await again.sit(ada.id))["my_seat"] == 2
    finally:
        await again.close()
    assert len(ada.seats) == 2


async def test_events_are_kept_for_wait_if_the_agent_only_looks(ada, seats, server, tmp_path):
    await start(ada, seats)
    await seats.wait(seconds=0)
    await seats.close()
    await ada.note("chat", "while you were away")
    again = Seats(server, tmp_path / "agent", name="Agent")
    try:
        while (await again.look())["version"] < ada.version:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await again.sit(ada.id)
        answer = await again.wait(seconds=20)
        assert [one["text"] for one in answer["events"]] == ["while you were away"]
    finally:
        await again.close()


async def test_events_of_shuffles_take_no_room(ada, seats):
    await start(ada, seats)
    await seats._tables[ada.id].until(lambda table: not table.shuffling and table.round)
    kept = {type(one.event).__name__ for one in seats._events[ada.id]}
    assert {"ShuffleStarted", "DeckSealed"} <= kept
    assert not kept & {"CardsSwapped", "EntropyCommitted", "EntropyRevealed"}


async def test_evidence_verifies_the_log(ada, seats):
    await start(ada, seats)
    await seats.draw(1)
    await ada.round_close()
    found = await seats.evidence()
    assert found["verified"] is True
    assert found["report"][4].startswith("passed: Each swap follows")
    assert found["audit"].endswith(f"/tables/{ada.id}/audit")


async def test_evidence_reads_the_lines_as_the_verifier_does(ada, seats, monkeypatch):
    await start(ada, seats)
    await ada.round_close()
    fetch = views._fetch
    monkeypatch.setattr(views, "_fetch", lambda *of: fetch(*of).replace(b"\n", b"\r\n"))
    assert (await seats.evidence())["verified"] is False


async def test_without_a_seat_it_can_only_list(ada, seats):
    with pytest.raises(BadRequest, match="Sit down"):
        await seats.look()
    with pytest.raises(BadToken, match="no seat at that table"):
        await seats.look(ada.id)


async def test_a_seat_that_was_left_is_not_taken_again(ada, seats):
    await seats.sit(ada.id)
    assert (await seats.leave())["left"] is True
    await ada.until(lambda table: len(table.seats) == 1)
    with pytest.raises(BadToken, match="no seat at that table"):
        await seats.look()
    assert (await seats.sit(ada.id))["my_seat"] == 2


async def test_links_give_an_invitation_or_a_seat(server, seats, tmp_path):
    pages = server.replace("ws://", "http://").removesuffix("/ws")
    async with dealer.connect(server, name="Ada") as house:
        table = await house.open(rules={"join": "invite"})
        with pytest.raises(NotEntitled):
            await seats.sit(table.id)
        link = f"{pages}/tables/{table.id}"
        assert (await seats.sit(f"{link}#invite={table.invite}"))["my_seat"] == 1
        own = await house.join(table)
        other = Seats(server, tmp_path / "other", name="Agent")
        assert (await other.sit(f"{link}#seat={own.token}"))["my_seat"] == 2
        await other.close()


async def test_it_plays_at_one_server_only(ada, seats, tmp_path):
    with pytest.raises(BadRequest, match="This agent plays at"):
        await seats.sit(f"http://cards.example.org/tables/{ada.id}")
    await seats.sit(ada.id)
    with pytest.raises(ConfigurationError, match="use another folder"):
        Seats("ws://cards.example.org/ws", tmp_path / "agent", name="Agent")


async def test_the_tools_by_their_names(seats):
    tools = await make_server(seats, version="1").list_tools()
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.description for tool in tools)
