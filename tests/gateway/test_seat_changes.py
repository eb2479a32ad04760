"""A seat with a new player: the previous one neither sees its cards nor acts for it."""

from __future__ import annotations

import pytest

from dealer.game.commands import Actor, Draw, LeaveSeat, TakeSeat
from tests.gateway.rpc_client import reason_of
from tests.gateway.tables import commit_entropy, reveal_entropy, seat_and_shuffle, seat_players
from tests.gateway.test_views import codes_in
from tests.service.bare_service import bare_service


async def test_a_waiting_draw_is_refused_when_its_player_has_left(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    ann, bob = table.players
    await table.host.call("round.open")
    waiting = ann.send("deck.draw", from_="random", count=2)
    await ann.until_version(4)
    await ann.call("table.leave")
    carol = await connect(gateway)
    joined = await carol.call("table.join", table=table.id, name="Carol")
    assert joined["seat"] == 1
    table.players, table.joined = [carol, bob], [joined, table.joined[1]]
    await commit_entropy(table)
    await reveal_entropy(table)
    await carol.until(lambda: any(event["type"] == "DeckSealed" for event in carol.events))
    assert await reason_of(waiting) == "not_your_seat"
    assert not any(event["type"] == "CardDrawn" for event in carol.events)
    assert codes_in(ann.frames) == set()


async def test_the_new_player_of_a_seat_resumes_with_its_cards(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, watch="nobody")
    await table.players[0].call("table.leave")
    carol = await connect(gateway)
    joined = await carol.call("table.join", table=table.id, name="Carol")
    assert joined["seat"] == 1
    drawn = await carol.call("deck.draw")
    await carol.close()
    back = await connect(gateway)
    await back.call("table.resume", table=table.id, token=joined["token"], after=0)
    await back.until_version(drawn["version"])
    assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]


async def test_a_player_that_joins_a_private_table_again_gets_events_again(
    gateway, connect
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    ann = table.players[0]
    other = await connect(gateway)
    await other.call("table.leave", table=table.id, token=table.tokens[0])
    await ann.call("table.join", table=table.id, name="Ann again")
    drawn = await ann.call("deck.draw")
    await ann.until_version(drawn["version"])
    assert ann.events[-1]["private"]["card"] == drawn["cards"][0]


@pytest.mark.parametrize("watch", ["anyone", "nobody"])
async def test_a_player_that_left_at_another_node_sees_no_card_of_the_next_one(
    gateway, connect, tmp_path, watch
) -> None:
    """The events were appended by another process, and are pushed in one batch here."""
    table = await seat_and_shuffle(connect, gateway, players=1, watch=watch)
    ann = table.players[0]
    async with bare_service(f"sqlite:///{tmp_path / 'dealer.db'}") as other:
        there = await other.lifecycle.load(table.id)
        left = await other.execute(there, LeaveSeat(Actor(seat=1)))
        await other.execute(there, TakeSeat("Carol", seat=1))
        drawn = await other.execute(there, Draw(Actor(seat=1), 3))
    await gateway.context.service.lifecycle.load(table.id)
    last = left.version if watch == "nobody" else drawn.version
    await ann.until_version(last)
    await ann.call("ping")
    assert codes_in(ann.frames) == set()
    assert ann.versions[-1] == last


async def test_a_removed_player_neither_acts_nor_sees_any_more(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, watch="nobody")
    ann, bob = table.players
    removed = await table.host.call("seat.vacate", seat=1, reason="away")
    await bob.until_version(removed["version"])
    drawn = await bob.call("deck.draw")
    await bob.until_version(drawn["version"])
    assert await reason_of(ann.call("deck.draw")) == "not_entitled"
    assert ann.events[-1]["type"] == "SeatVacated"
    assert ann.events[-1]["public"] == {"by": "host", "seat": 1}
    assert ann.events[-1]["opened"]["part"] == {"reason": "away"}
    again = await connect(gateway)
    refused = again.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await reason_of(refused) == "bad_token"


async def test_a_note_is_for_everyone_and_executed_once(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    note = {"kind": "chat", "text": "any sevens? \u2660", "cmd": "a note"}
    added = await ann.call("table.note", **note)
    assert await ann.call("table.note", **note) == added
    await bob.until_version(added["version"])
    (event,) = (event for event in bob.events if event["type"] == "NoteAdded")
    assert event["public"] == {"kind": "chat", "seat": 1}
    assert event["opened"]["part"] == {"text": "any sevens? \u2660"}


async def test_the_new_host_deals_and_a_snapshot_names_its_seat(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    await table.host.call("table.transfer_host", seat=1)
    assert (await bob.call("table.state"))["state"]["host_seat"] == 1
    assert await reason_of(table.host.call("deck.deal", each=1)) == "not_entitled"
    await ann.call("deck.deal", each=1)
    await ann.call("table.leave")
    await table.host.call("round.close")
    assert "host_seat" not in (await bob.call("table.state"))["state"]
