"""Coming back: at any version, in the middle of everything, exactly once and in order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from dealer.errors import DatabaseAway, DatabaseDamaged, DatabaseLocked, Overloaded
from dealer.gateway import pump
from dealer.proof.checkpoint import read_checkpoint
from dealer.proof.tree import Tree, leaf_hash, verify_consistency
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Refusal
from tests.gateway.tables import promise, reveal, seat_all, shuffled


def leaf_of(frame: dict) -> bytes:
    """The leaf's bytes as the frame has them."""
    leaf = {name: value for name, value in frame.items() if name != "private"}
    return json.dumps(leaf, ensure_ascii=False, separators=(",", ":")).encode()


async def test_after_any_version_through_live_traffic(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann, bob = table.players
    await table.host.ask("deck.deal", each=2)
    head = (await ann.ask("table.state"))["version"]
    drawing = asyncio.create_task(draw_on(bob, 20))
    again = []
    for after in range(0, head + 1, 5):
        guest = await arrive(gateway)
        answer = await guest.ask("table.watch", table=table.id, after=after)
        again.append((after, answer["version"], guest))
    last = await drawing
    for after, version, guest in again:
        await guest.seen(last)
        assert guest.versions == list(range(after + 1, last + 1))
        (resumed,) = guest.notices("resumed")
        assert resumed["table"] == table.id
        assert resumed["version"] >= version
    whole = again[0][2]
    by_version = {event["version"]: leaf_of(event) for event in whole.events}
    for _, _, guest in again:
        assert all(leaf_of(event) == by_version[event["version"]] for event in guest.events)


async def draw_on(guest, times: int) -> int:
    version = 0
    for _ in range(times):
        version = (await guest.ask("deck.draw"))["version"]
    return version


async def test_a_seat_gets_its_cards_again(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    ann = table.players[0]
    drawn = await ann.ask("deck.draw", count=3)
    await ann.leave()
    back = await arrive(gateway)
    answer = await back.ask("table.resume", table=table.id, token=table.tokens[0], after=2)
    assert answer["seat"] == 1
    await back.seen(drawn["version"])
    assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]
    more = await back.ask("deck.draw")
    await back.seen(more["version"])
    assert back.versions == list(range(3, more["version"] + 1))


async def test_the_whole_log_has_the_signed_root(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    back = await arrive(gateway)
    answer = await back.ask("table.resume", table=table.id, token=table.host_token, after=0)
    await back.until(lambda: back.notices("resumed"))
    tree = Tree()
    roots = {}
    for event in back.events:
        tree.append(leaf_hash(leaf_of(event)))
        roots[event["version"]] = tree.root()
    notes = [answer["checkpoint"], *(note["note"] for note in back.notices("checkpoint"))]
    assert len(notes) >= 3
    for note in notes:
        head = read_checkpoint(note)
        assert roots[head.size] == head.root


async def test_each_checkpoint_comes_right_behind_what_it_covers(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    await table.players[0].ask("deck.draw")
    back = await arrive(gateway)
    await back.ask("table.watch", table=table.id, after=0)
    await back.until(lambda: back.notices("resumed"))
    version = 0
    for frame in back.told:
        if frame["method"] == "checkpoint":
            assert frame["params"]["size"] == version
        elif frame["method"] == "event":
            version = frame["params"]["version"]
        elif frame["method"] == "events":
            version = frame["params"]["list"][-1]["version"]


async def test_the_note_that_reveals_wait_for_comes_again(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open")
    await promise(table)
    shuffle = await table.host.ask("deck.shuffle")
    back = await arrive(gateway)
    await back.ask("table.resume", table=table.id, token=table.tokens[0], after=shuffle["version"])
    await back.until(lambda: back.notices("resumed"))
    assert [note["size"] for note in back.notices("checkpoint")] == [shuffle["version"]]
    table.players[0] = back
    await reveal(table)
    await back.until(lambda: back.events[-1]["type"] == "DeckSealed")


async def test_who_is_too_far_behind_gets_a_snapshot_with_a_proof(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, resume=10))
    table = await shuffled(arrive, gateway, players=1)
    back = await arrive(gateway)
    answer = await back.ask("table.resume", table=table.id, token=table.tokens[0], after=3)
    assert answer["reset"] is True
    await back.until(lambda: back.notices("resumed"))
    (snapshot,) = back.notices("snapshot")
    assert snapshot["reset"] is True
    assert snapshot["version"] == answer["version"] == read_checkpoint(snapshot["checkpoint"]).size
    assert snapshot["state"]["round"]["stacks"]["deck"]
    whole = await arrive(gateway)
    await whole.ask("table.watch", table=table.id, after=answer["version"] - 10)
    tree = Tree()
    for entry in await gateway.floor.service.entries(
        await gateway.floor.service.load(table.id), 0, 3
    ):
        tree.append(leaf_hash(entry.leaf.encode()))
    assert verify_consistency(
        old=3,
        old_root=tree.root(),
        new=snapshot["version"],
        new_root=read_checkpoint(snapshot["checkpoint"]).root,
        proof=[bytes.fromhex(node) for node in snapshot["proof"]],
    )
    drawn = await back.ask("deck.draw")
    await back.seen(drawn["version"])
    assert back.versions == [drawn["version"]]


async def test_who_knows_more_than_the_house_is_told_so(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    back = await arrive(gateway)
    answer = await back.ask("table.resume", table=table.id, token=table.tokens[0], after=5000)
    assert answer["reset"] is True
    await back.until(lambda: back.notices("snapshot"))
    assert "proof" not in back.notices("snapshot")[0]


async def test_a_newer_connection_takes_the_seat(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2)
    newer = await arrive(gateway)
    await newer.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await table.players[0].gone() == 4409
    await newer.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
    drawn = await newer.ask("deck.draw")
    await table.players[1].seen(drawn["version"])
    assert not table.players[1].closed.done()


async def test_hello_takes_up_several_tables(gateway, arrive) -> None:
    one = await shuffled(arrive, gateway, players=1)
    two = await seat_all(arrive, gateway, players=1)
    back = await arrive(gateway)
    tokens = [
        {"table": one.id, "token": one.tokens[0], "after": 3},
        {"table": two.id, "token": two.host_token},
        {"table": two.id, "token": "host.wrong", "after": 0},
        {"table": "0" * 32, "token": "x", "after": 0},
    ]
    greeting = await back.ask("session.hello", tokens=tokens)
    first, second, third, fourth = greeting["tables"]
    assert (first["seat"], second["host"], second["version"]) == (1, True, 2)
    assert third["error"]["data"]["reason"] == "bad_token"
    assert fourth["error"]["data"]["reason"] == "unknown_table"
    await back.until(lambda: len(back.notices("resumed")) == 2)
    assert {event["table"] for event in back.events} == {one.id}
    assert len((await back.ask("session.refresh"))["tables"]) == 2
    with pytest.raises(Refusal, match="Name the table"):
        await back.ask("deck.draw")


async def test_who_watches_and_then_joins_misses_nothing(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    guest = await arrive(gateway)
    watched = await guest.ask("table.watch", table=table.id)
    drawing = asyncio.create_task(draw_on(table.players[0], 10))
    joined = await guest.ask("table.join", name="late")
    last = await drawing
    drawn = await guest.ask("deck.draw")
    await guest.seen(max(last, drawn["version"]))
    assert guest.versions == list(range(watched["version"] + 1, guest.versions[-1] + 1))
    before = [json.loads(frame) for frame in guest.frames]
    place = next(n for n, f in enumerate(before) if f.get("result", {}).get("token"))
    told = [f["params"]["version"] for f in before[:place] if f.get("method") == "event"]
    assert told[-1] == joined["version"]


async def test_after_a_restart_tokens_still_open_seats(open_gateway, service, arrive) -> None:
    first = await open_gateway()
    table = await shuffled(arrive, first, players=1)
    drawn = await table.players[0].ask("deck.draw")
    await first.drain()
    second = await open_gateway(limits=EAGER)
    back = await arrive(second)
    await back.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
    await back.seen(drawn["version"])
    assert back.events[-1]["private"]["card"] == drawn["cards"][0]


async def test_a_resume_that_fails_leaves_one_where_one_was(gateway, arrive, monkeypatch) -> None:
    table = await shuffled(arrive, gateway, players=1)
    ann = table.players[0]
    service, checkpoint = gateway.floor.service, gateway.floor.service.checkpoint

    async def locked(resident, *, writing):
        raise DatabaseLocked("/srv/dealer.db is locked")

    monkeypatch.setattr(service, "checkpoint", locked)
    with pytest.raises(Refusal) as caught:
        await ann.ask("table.resume", token=table.tokens[0], after=0)
    assert (caught.value.reason, caught.value.error["data"]["temporary"]) == ("unavailable", True)
    assert "srv" not in str(caught.value)
    monkeypatch.setattr(service, "checkpoint", checkpoint)
    drawn = await ann.ask("deck.draw")
    await ann.seen(drawn["version"])
    assert ann.versions == list(range(3, drawn["version"] + 1))


async def test_who_is_behind_while_the_log_is_away_waits_on_the_same_connection(
    open_gateway, service, arrive, monkeypatch
) -> None:
    gateway = await open_gateway(limits=replace(EAGER, chunk=2))
    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.01)
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open", entropy="house")
    newest = (await table.host.ask("deck.shuffle"))["version"]
    entries, asked = service.entries, 0

    async def sometimes_away(*which):
        nonlocal asked
        asked += 1
        if asked in (1, 2, 4):
            raise Overloaded("busy") if asked == 2 else DatabaseAway("away")
        return await entries(*which)

    monkeypatch.setattr(service, "entries", sometimes_away)
    guest = await arrive(gateway)
    await guest.ask("table.watch", table=table.id, after=0)
    await guest.until(lambda: guest.notices("resumed"))
    assert guest.versions == list(range(1, newest + 1))
    assert len(guest.notices("resumed")) == 1
    assert not guest.closed.done()
    await table.host.ask("deck.deal", each=1)
    await guest.seen(newest + 1)


async def test_who_is_behind_in_a_damaged_log_is_sent_away(
    gateway, service, arrive, monkeypatch
) -> None:
    table = await seat_all(arrive, gateway, players=1)

    async def damaged(*which):
        raise DatabaseDamaged("a version is missing")

    monkeypatch.setattr(service, "entries", damaged)
    guest = await arrive(gateway)
    await guest.ask("table.watch", table=table.id, after=0)
    assert await guest.gone() == 1013


async def test_who_gave_a_token_watches_from_that_seat(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    other = await arrive(gateway)
    drawn = await other.ask("deck.draw", table=table.id, token=table.tokens[0])
    seen = await other.ask("table.watch")
    assert drawn["cards"][0] in [card for _, card, *_ in seen["state"]["round"]["cards"]]
    assert await table.players[0].gone() == 4409
    more = await other.ask("deck.draw")
    await other.seen(more["version"])
    assert other.events[-1]["private"]["card"] == more["cards"][0]


async def test_events_before_a_state_come_before_it(gateway, arrive, monkeypatch) -> None:
    table = await shuffled(arrive, gateway, players=1)
    guest = await arrive(gateway)
    watched = await guest.ask("table.watch", table=table.id)
    service, snapshot = gateway.floor.service, gateway.floor.service.snapshot

    async def late(resident, viewer):
        await table.players[0].ask("deck.draw", count=2)
        return await snapshot(resident, viewer)

    monkeypatch.setattr(service, "snapshot", late)
    joined = await guest.ask("table.join", name="late")
    told = guest.versions
    assert told == list(range(watched["version"] + 1, joined["version"] + 1))
    assert len(told) == 3


async def test_a_token_is_checked_once(gateway, arrive, monkeypatch) -> None:
    table = await shuffled(arrive, gateway, players=1)
    checked: list[str] = []
    tokens = gateway.floor.service.tokens_of(b"")
    actor = tokens.actor

    def counting(*given):
        checked.append(given[-1])
        return actor(*given)

    monkeypatch.setattr(tokens, "actor", counting)
    other = await arrive(gateway)
    for _ in range(3):
        await other.ask("deck.draw", table=table.id, token=table.tokens[0])
    assert checked == [table.tokens[0]]


async def test_who_lost_the_seat_before_the_beginning_looks_from_nowhere(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1)
    resident = await gateway.floor.service.load(table.id)
    pump = gateway.floor.pump
    (outlet,) = {one.outlet for one in resident.sessions if one.seat == 1}
    subscription = pump.subscribe(outlet, resident)
    subscription.seat, subscription.since = 1, table.joined[0]["version"] - 1
    pump.start(subscription, after=resident.committed)
    assert subscription.seat is None
    pump.end(subscription)
