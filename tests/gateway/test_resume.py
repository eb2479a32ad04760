"""Resume: from any version and during live traffic each event arrives once and in order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from dealer.errors import DatabaseDamaged, DatabaseLocked, DatabaseUnavailable, Overloaded
from dealer.game.state import SeatHolder
from dealer.gateway.presence.membership import Membership, SubscriptionState
from dealer.gateway.push import backlog
from dealer.proof.checkpoint import read_checkpoint
from dealer.proof.tree import Tree, leaf_hash, verify_consistency
from dealer.service import LiveTable
from dealer.service.reading.checkpoints import Checkpoints
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import commit_entropy, reveal_entropy, seat_and_shuffle, seat_players


def leaf_of(frame: dict) -> bytes:
    """The leaf's bytes as the frame has them."""
    leaf = {name: value for name, value in frame.items() if name not in ("private", "opened")}
    return json.dumps(leaf, ensure_ascii=False, separators=(",", ":")).encode()


async def test_a_watch_from_any_version_during_live_traffic(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann, bob = table.players
    await table.host.call("deck.deal", each=2)
    head = (await ann.call("table.state"))["version"]
    drawing = asyncio.create_task(draw_repeatedly(bob, 20))
    spectators = []
    for after in range(0, head + 1, 5):
        client = await connect(gateway)
        answer = await client.call("table.watch", table=table.id, after=after)
        spectators.append((after, answer["version"], client))
    last = await drawing
    for after, version, client in spectators:
        await client.until_version(last)
        assert client.versions == list(range(after + 1, last + 1))
        (resumed,) = client.notices("resumed")
        assert resumed["table"] == table.id
        assert resumed["version"] >= version
    from_start = spectators[0][2]
    by_version = {event["version"]: leaf_of(event) for event in from_start.events}
    for _, _, client in spectators:
        assert all(leaf_of(event) == by_version[event["version"]] for event in client.events)


async def draw_repeatedly(client, times: int) -> int:
    version = 0
    for _ in range(times):
        version = (await client.call("deck.draw"))["version"]
    return version


async def test_a_seat_gets_its_cards_again(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    ann = table.players[0]
    drawn = await ann.call("deck.draw", count=3)
    await ann.close()
    back = await connect(gateway)
    answer = await back.call("table.resume", table=table.id, token=table.tokens[0], after=2)
    assert answer["seat"] == 1
    await back.until_version(drawn["version"])
    assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]
    more = await back.call("deck.draw")
    await back.until_version(more["version"])
    assert back.versions == list(range(3, more["version"] + 1))


async def test_the_whole_log_has_the_signed_root(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    back = await connect(gateway)
    answer = await back.call("table.resume", table=table.id, token=table.host_token, after=0)
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


async def test_each_checkpoint_follows_the_event_that_it_covers(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.players[0].call("deck.draw")
    back = await connect(gateway)
    await back.call("table.watch", table=table.id, after=0)
    await back.until(lambda: back.notices("resumed"))
    version = 0
    for frame in back.notifications:
        if frame["method"] == "checkpoint":
            assert frame["params"]["size"] == version
        elif frame["method"] == "event":
            version = frame["params"]["version"]
        elif frame["method"] == "events":
            version = frame["params"]["list"][-1]["version"]


async def test_a_resume_repeats_the_checkpoint_that_reveals_need(gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open")
    await commit_entropy(table)
    shuffle = await table.host.call("deck.shuffle")
    back = await connect(gateway)
    await back.call("table.resume", table=table.id, token=table.tokens[0], after=shuffle["version"])
    await back.until(lambda: back.notices("resumed"))
    assert [note["size"] for note in back.notices("checkpoint")] == [shuffle["version"]]
    table.players[0] = back
    await reveal_entropy(table)
    await back.until(lambda: back.events[-1]["type"] == "DeckSealed")


async def test_a_resume_over_the_limit_gets_a_snapshot_with_a_proof(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, resume=10))
    table = await seat_and_shuffle(connect, gateway, players=1)
    back = await connect(gateway)
    answer = await back.call("table.resume", table=table.id, token=table.tokens[0], after=3)
    assert answer["reset"] is True
    await back.until(lambda: back.notices("resumed"))
    (snapshot,) = back.notices("snapshot")
    assert snapshot["reset"] is True
    assert snapshot["version"] == answer["version"] == read_checkpoint(snapshot["checkpoint"]).size
    assert snapshot["state"]["round"]["stacks"]["deck"]
    spectator = await connect(gateway)
    await spectator.call("table.watch", table=table.id, after=answer["version"] - 10)
    tree = Tree()
    for entry in await gateway.context.service.reader.entries(
        await gateway.context.service.lifecycle.load(table.id), 0, 3
    ):
        tree.append(leaf_hash(entry.leaf.encode()))
    assert verify_consistency(
        old=3,
        old_root=tree.root(),
        new=snapshot["version"],
        new_root=read_checkpoint(snapshot["checkpoint"]).root,
        proof=[bytes.fromhex(node) for node in snapshot["proof"]],
    )
    drawn = await back.call("deck.draw")
    await back.until_version(drawn["version"])
    assert back.versions == [drawn["version"]]


async def test_a_resume_after_the_newest_version_is_reset_without_a_proof(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    back = await connect(gateway)
    answer = await back.call("table.resume", table=table.id, token=table.tokens[0], after=5000)
    assert answer["reset"] is True
    await back.until(lambda: back.notices("snapshot"))
    assert "proof" not in back.notices("snapshot")[0]


async def test_a_newer_connection_supersedes_the_one_of_the_seat(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    newer = await connect(gateway)
    await newer.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await table.players[0].wait_closed() == 4409
    await newer.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    drawn = await newer.call("deck.draw")
    await table.players[1].until_version(drawn["version"])
    assert not table.players[1].closed.done()


async def test_a_hello_resumes_several_tables(gateway, connect) -> None:
    one = await seat_and_shuffle(connect, gateway, players=1)
    two = await seat_players(connect, gateway, players=1)
    back = await connect(gateway)
    tokens = [
        {"table": one.id, "token": one.tokens[0], "after": 3},
        {"table": two.id, "token": two.host_token},
        {"table": two.id, "token": "host.wrong", "after": 0},
        {"table": "0" * 32, "token": "x", "after": 0},
    ]
    greeting = await back.call("session.hello", tokens=tokens)
    first, second, third, fourth = greeting["tables"]
    assert (first["seat"], second["host"], second["version"]) == (1, True, 2)
    assert third["error"]["data"]["reason"] == "bad_token"
    assert fourth["error"]["data"]["reason"] == "unknown_table"
    await back.until(lambda: len(back.notices("resumed")) == 2)
    assert {event["table"] for event in back.events} == {one.id}
    assert len((await back.call("session.refresh"))["tables"]) == 2
    with pytest.raises(Refusal, match="Name the table"):
        await back.call("deck.draw")


async def test_a_bug_at_one_table_of_a_hello_stops_no_other_table(
    gateway, connect, monkeypatch
) -> None:
    tables = [await seat_players(connect, gateway, players=1) for _ in range(3)]
    ids, back = [table.id for table in tables], await connect(gateway)
    tokens = [{"table": table.id, "token": table.host_token, "after": 2} for table in tables]
    await back.call("session.hello", tokens=tokens[:2])  # their streams are running
    await back.until(lambda: len(back.notices("resumed")) == 2)
    head, reports = Checkpoints.head, []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context["exception"]))

    async def fail(self: Checkpoints, live_table: LiveTable) -> tuple[int, str]:
        if live_table.table_id == ids[1]:
            raise RuntimeError("a bug")
        return await head(self, live_table)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "head", fail)
        first, second, third = (await back.call("session.hello", tokens=tokens))["tables"]
    assert first["host"]
    assert second["error"]["data"] == {"reason": "unavailable", "temporary": True}
    assert third["host"]
    assert [str(report) for report in reports] == ["a bug"]
    for table in tables:
        await table.players[0].call("table.note", kind="chat", text="Still there?")
    await back.until(lambda: len(back.events) >= len(tables))
    assert {event["table"] for event in back.events} == {*ids}


async def test_all_who_come_back_get_one_signed_head_and_nothing_is_written(
    gateway, connect, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    service, signed = gateway.context.service, []
    live_table = service.tables.get(table.id)
    drawn = await table.players[0].call("deck.draw")  # no head is due at this version
    sign = service.executor.sign

    def counted(of: LiveTable, size: int, root: bytes) -> str:
        signed.append(size)
        return sign(of, size, root)

    monkeypatch.setattr(service.executor, "sign", counted)
    stored = await service.log.checkpoints(live_table.id)
    notes = set()
    for token in (table.host_token, *table.tokens):
        back = await connect(gateway)
        resumed = await back.call(
            "table.resume", table=table.id, token=token, after=drawn["version"]
        )
        assert resumed["version"] == drawn["version"]
        notes.add(resumed["checkpoint"])
        await back.until(lambda back=back: back.notices("resumed"))
    assert len(notes) == 1
    assert signed == [drawn["version"]]
    assert await service.log.checkpoints(live_table.id) == stored


async def test_a_spectator_that_joins_misses_no_event(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    client = await connect(gateway)
    watched = await client.call("table.watch", table=table.id)
    drawing = asyncio.create_task(draw_repeatedly(table.players[0], 10))
    joined = await client.call("table.join", name="late")
    last = await drawing
    drawn = await client.call("deck.draw")
    await client.until_version(max(last, drawn["version"]))
    assert client.versions == list(range(watched["version"] + 1, client.versions[-1] + 1))
    frames = [json.loads(frame) for frame in client.frames]
    answer = next(n for n, frame in enumerate(frames) if frame.get("result", {}).get("token"))
    events = [frame for frame in frames[:answer] if frame.get("method") == "event"]
    assert events[-1]["params"]["version"] == joined["version"]


async def test_tokens_are_valid_after_a_restart(open_gateway, service, connect) -> None:
    first = await open_gateway()
    table = await seat_and_shuffle(connect, first, players=1)
    drawn = await table.players[0].call("deck.draw")
    await first.drain()
    second = await open_gateway(limits=TEST_LIMITS)
    back = await connect(second)
    await back.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    await back.until_version(drawn["version"])
    assert back.events[-1]["private"]["card"] == drawn["cards"][0]


async def test_a_failed_resume_leaves_the_subscription_unchanged(
    gateway, connect, monkeypatch
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    ann = table.players[0]
    service, head = gateway.context.service, gateway.context.service.checkpoints.head

    async def locked(live_table):
        raise DatabaseLocked("/srv/dealer.db is locked")

    monkeypatch.setattr(service.checkpoints, "head", locked)
    with pytest.raises(Refusal) as caught:
        await ann.call("table.resume", token=table.tokens[0], after=0)
    assert (caught.value.reason, caught.value.error["data"]["temporary"]) == ("unavailable", True)
    assert "srv" not in str(caught.value)
    monkeypatch.setattr(service.checkpoints, "head", head)
    drawn = await ann.call("deck.draw")
    await ann.until_version(drawn["version"])
    assert ann.versions == list(range(3, drawn["version"] + 1))


async def test_a_catch_up_waits_while_the_database_is_unavailable(
    open_gateway, service, connect, monkeypatch
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, chunk=2))
    monkeypatch.setattr(backlog, "RETRY_SECONDS", 0.01)
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open", entropy="house")
    newest = (await table.host.call("deck.shuffle"))["version"]
    entries, calls = service.reader.entries, 0

    async def sometimes_unavailable(*arguments):
        nonlocal calls
        calls += 1
        if calls in (1, 2, 4):
            raise Overloaded("busy") if calls == 2 else DatabaseUnavailable("unreachable")
        return await entries(*arguments)

    monkeypatch.setattr(service.reader, "entries", sometimes_unavailable)
    client = await connect(gateway)
    await client.call("table.watch", table=table.id, after=0)
    await client.until(lambda: client.notices("resumed"))
    assert client.versions == list(range(1, newest + 1))
    assert len(client.notices("resumed")) == 1
    assert not client.closed.done()
    await table.host.call("deck.deal", each=1)
    await client.until_version(newest + 1)


async def test_a_catch_up_from_a_damaged_log_closes_the_connection(
    gateway, service, connect, monkeypatch
) -> None:
    table = await seat_players(connect, gateway, players=1)

    async def damaged(*arguments):
        raise DatabaseDamaged("a version is missing")

    monkeypatch.setattr(service.reader, "entries", damaged)
    client = await connect(gateway)
    await client.call("table.watch", table=table.id, after=0)
    assert await client.wait_closed() == 1013


async def test_a_connection_that_used_a_token_watches_as_that_seat(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    other = await connect(gateway)
    drawn = await other.call("deck.draw", table=table.id, token=table.tokens[0])
    seen = await other.call("table.watch")
    assert drawn["cards"][0] in [card for _, card, *_ in seen["state"]["round"]["cards"]]
    assert await table.players[0].wait_closed() == 4409
    more = await other.call("deck.draw")
    await other.until_version(more["version"])
    assert other.events[-1]["private"]["card"] == more["cards"][0]


async def test_events_of_a_snapshot_are_pushed_before_it(gateway, connect, monkeypatch) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    client = await connect(gateway)
    watched = await client.call("table.watch", table=table.id)
    service, snapshot = gateway.context.service, gateway.context.service.checkpoints.snapshot

    async def after_a_draw(live_table, viewer):
        await table.players[0].call("deck.draw", count=2)
        return await snapshot(live_table, viewer)

    monkeypatch.setattr(service.checkpoints, "snapshot", after_a_draw)
    joined = await client.call("table.join", name="late")
    versions = client.versions
    assert versions == list(range(watched["version"] + 1, joined["version"] + 1))
    assert len(versions) == 3


async def test_a_token_is_checked_once(gateway, connect, monkeypatch) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    checked: list[str] = []
    tokens = gateway.context.service.tokens.of(b"")
    actor = tokens.actor

    def recorded(*arguments):
        checked.append(arguments[-1])
        return actor(*arguments)

    monkeypatch.setattr(tokens, "actor", recorded)
    other = await connect(gateway)
    for _ in range(3):
        await other.call("deck.draw", table=table.id, token=table.tokens[0])
    assert checked == [table.tokens[0]]


async def test_a_subscription_for_a_seat_that_is_lost_has_no_viewer(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    live_table = await gateway.context.service.lifecycle.load(table.id)
    broadcaster = gateway.context.broadcaster
    (transport,) = {one.transport for one in live_table.subscribers if one.viewer}
    subscription = broadcaster.subscribe(transport, Membership(live_table))
    subscription.viewer = SeatHolder(1, table.joined[0]["version"] - 1)
    gateway.context.backlog.start(subscription, after=live_table.committed)
    assert subscription.task is not None
    await subscription.task
    assert subscription.state is SubscriptionState.LIVE
    assert subscription.viewer is None
    gateway.context.backlog.end(subscription)
