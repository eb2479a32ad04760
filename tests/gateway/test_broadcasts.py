"""Broadcasts on the wire: links, what a viewer is sent and when, and what every refusal says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from dealer.eventlog.services import StoredLink
from dealer.gateway import Gateway
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.presence import presence
from dealer.proof.checkpoint import Cosigner
from dealer.service import Service
from dealer.service.clock import SteadyClock
from dealer.service.nodes import head_poller
from dealer.service.reading import broadcasts as reading
from dealer.service.reading.broadcasts import NO_BROADCAST
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.rpc_client import RpcClient, eventually, reason_of, refusal
from tests.gateway.tables import SeatedTable, seat_and_shuffle
from tests.gateway.test_post import Post
from tests.harness.service_keys import add_key, revoke_key, with_key

COSIGNER = Cosigner(bytes(range(32)))
SECONDS = 300
START = 1_700_000_000_000


class Time:
    """The clock of the server, which a test moves."""

    def __init__(self) -> None:
        self.ms = 0

    def wall(self) -> int:
        return START + self.ms

    def elapsed(self) -> int:
        return self.ms

    def pass_(self, seconds: float) -> None:
        self.ms += round(1000 * seconds)


def use(time: Time, service: Service) -> None:
    service.now = service.executor.now = time.wall
    service.broadcasts.clock = SteadyClock(time.wall, time.elapsed)


@pytest.fixture
async def time(service: Service, quick: None) -> AsyncIterator[Time]:
    time = Time()
    use(time, service)
    showing = asyncio.create_task(service.broadcasts.run())
    yield time
    showing.cancel()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's clock is read often."""
    monkeypatch.setattr(reading, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 0.05)


@pytest.fixture
async def table(time: Time, gateway: Gateway, connect: Connect) -> SeatedTable:
    return await seat_and_shuffle(connect, gateway, players=2, broadcast=SECONDS, watch="nobody")


async def link_of(table: SeatedTable) -> str:
    return str((await table.host.call("broadcast.link"))["link"])


async def watch(client: RpcClient, table: SeatedTable, link: str, **more: Any) -> dict[str, Any]:
    """The answer, once the events that it names have come, too."""
    answer: dict[str, Any] = await client.call("table.watch", table=table.id, link=link, **more)
    await client.until_version(answer["version"])
    return answer


async def version_of(table: SeatedTable) -> int:
    return int((await table.host.call("table.state"))["version"])


def faces(client: RpcClient) -> list[int]:
    """The slots whose faces a viewer was sent."""
    return [event["private"]["slot"] for event in client.events if "private" in event]


async def test_a_viewer_sees_what_each_player_saw_when_it_is_old_enough(
    table, time, connect, gateway
) -> None:
    link, (ann, bob) = await link_of(table), table.players
    first = (await ann.call("deck.draw", count=2))["slots"]
    time.pass_(100)
    second = (await bob.call("deck.draw"))["slots"]
    viewer = await connect(gateway)
    assert await reason_of(watch(viewer, table, link)) == "too_early"  # it has not begun
    time.pass_(SECONDS - 100)
    seen = await watch(viewer, table, link)
    assert seen["version"] == await version_of(table) - 1
    assert viewer.versions == list(range(1, seen["version"] + 1))
    assert faces(viewer) == first
    time.pass_(99.999)
    again = await connect(gateway)
    assert (await watch(again, table, link))["version"] == seen["version"]
    assert viewer.versions[-1] == seen["version"]
    time.pass_(0.001)
    await viewer.until_version(seen["version"] + 1)
    assert faces(viewer) == first + second
    # What they get is one frame, byte for byte.
    await again.until_version(seen["version"] + 1)
    assert again.frames[-1] == viewer.frames[-1]


async def test_nothing_shows_that_there_is_more(table, time, connect, gateway) -> None:
    """Whatever is newer: the bytes of every answer are the same."""
    link = await link_of(table)
    await table.players[0].call("deck.draw", count=3)
    time.pass_(SECONDS)
    viewers = [await connect(gateway), await connect(gateway)]
    before = await watch(viewers[0], table, link)
    for player in table.players:
        await player.call("deck.draw", count=5)
        await player.call("table.note", kind="chat.say", text="a longer text " * 20)
    await table.host.call("round.close")
    await table.host.call("round.open", entropy="house")
    extra = await connect(gateway)
    await extra.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    assert await watch(viewers[1], table, link) == before
    assert viewers[1].frames[1:] == viewers[0].frames[1:]  # all but the answer with its id
    resumed = await watch(viewers[0], table, link, after=3)
    assert resumed == before
    assert await watch(viewers[0], table, link, after=before["version"]) == before
    await viewers[0].until(
        lambda: (
            viewers[0].versions
            == [*range(1, before["version"] + 1), *range(4, before["version"] + 1)]
        )
    )
    newest, before_these = await version_of(table), len(viewers[1].frames)
    for after in (before["version"] + 1, newest, newest + 1, 10**6):
        refused = await refusal(watch(viewers[1], table, link, after=after))
        assert (refused.reason, str(refused)) == (
            "too_early", "This table's broadcast has not come that far; try again shortly."
        )  # fmt: skip
    assert len(viewers[1].frames) == before_these + 4  # the refusals
    # The link opens no other door.
    for method in ("table.state", "table.presence", "audit.bundle"):
        for more in ({}, {"token": link}):
            refused = viewers[1].call(method, table=table.id, **more)
            assert await reason_of(refused) in ("not_entitled", "bad_token")
    refused = viewers[1].call("table.resume", table=table.id, token=link, after=0)
    assert await reason_of(refused) == "bad_token"


async def test_a_table_closed_early_is_shown_at_its_time(table, time, connect, gateway) -> None:
    link, viewer = await link_of(table), await connect(gateway)
    time.pass_(SECONDS)
    seen = await watch(viewer, table, link)
    await table.host.call("table.close")
    time.pass_(SECONDS - 0.001)
    other = await connect(gateway)
    assert await watch(other, table, link) == seen
    assert viewer.types()[-1:] != ["TableClosed"]
    time.pass_(0.001)
    await viewer.until(lambda: viewer.types()[-1:] == ["TableClosed"])


async def test_a_clock_that_is_set_shows_nothing_early(
    table, time, connect, gateway, service
) -> None:
    link, viewer = await link_of(table), await connect(gateway)
    time.pass_(SECONDS)
    seen = await watch(viewer, table, link)
    service.broadcasts.clock._wall = lambda: time.wall() + 2000 * SECONDS
    await table.players[0].call("deck.draw")
    assert await watch(viewer, table, link) == seen
    time.pass_(SECONDS - 0.001)
    assert await watch(viewer, table, link) == seen
    time.pass_(0.001)
    await viewer.until_version(seen["version"] + 1)
    service.broadcasts.clock._wall = lambda: time.wall() - 2000 * SECONDS
    assert (await watch(viewer, table, link))["version"] == seen["version"] + 1
    await table.players[0].call("deck.draw")
    time.pass_(2 * SECONDS)
    assert (await watch(viewer, table, link))["version"] == seen["version"] + 1


async def test_a_link_that_was_taken_back_ends_its_connections(
    table, time, connect, gateway, service
) -> None:
    link = await link_of(table)
    assert await link_of(table) == link
    time.pass_(SECONDS)
    viewer, host = await connect(gateway), table.host
    await watch(viewer, table, link)
    assert await host.call("broadcast.revoke") == {"revoked": True}
    assert await viewer.wait_closed() == CloseCode.KEY_REVOKED
    assert await host.call("broadcast.revoke") == {"revoked": False}
    again = await connect(gateway)
    assert str(await refusal(watch(again, table, link))) == NO_BROADCAST
    new = await link_of(table)
    assert new != link
    assert await watch(again, table, new)
    assert str(await refusal(watch(await connect(gateway), table, link))) == NO_BROADCAST


async def test_a_link_that_was_taken_back_while_the_server_was_frozen_shows_nothing_more(
    table, time, connect, gateway, service, monkeypatch
) -> None:
    link, valid = await link_of(table), reading.Broadcasts._valid
    time.pass_(SECONDS)
    viewer = await connect(gateway)
    await watch(viewer, table, link)
    await table.players[0].call("deck.draw")
    seen, events = viewer.versions[-1], service.recent.bytes

    async def frozen(self: reading.Broadcasts, tables: Collection[bytes]) -> set[StoredLink]:
        """The answer of the database comes before, and is read after, the pause."""
        found = await valid(self, tables)
        monkeypatch.setattr(reading.Broadcasts, "_valid", valid)
        await table.host.call("broadcast.revoke")
        time.pass_(SECONDS)
        return found

    monkeypatch.setattr(reading.Broadcasts, "_valid", frozen)
    assert await viewer.wait_closed() == CloseCode.KEY_REVOKED
    assert viewer.versions[-1] == seen
    assert service.recent.bytes >= events > 0  # others go on reading from memory


async def test_a_refused_viewer_and_a_long_history_do_not_hold_up_others(
    table, time, connect, gateway, service, monkeypatch
) -> None:
    link = await link_of(table)
    viewer = await connect(gateway)
    assert await reason_of(watch(viewer, table, link)) == "too_early"
    await eventually(lambda: not service.broadcasts.watched)
    monkeypatch.setattr(reading, "SLICE", 2)
    broadcast = await service.broadcasts.find(table.id, link)
    time.pass_(SECONDS)
    await service.broadcasts.advance(broadcast, once=True)
    assert broadcast.committed == 2


async def test_the_link_of_a_service_ends_with_its_key(time, connect, gateway, service) -> None:
    shop = await connect(**with_key(await add_key(service, "shop", "open", "broadcast")))
    opened = await shop.call("table.open", rules={"broadcast": 0})
    table = SeatedTable(opened["table"], shop, "", [], [])
    link = str((await shop.call("broadcast.link", table=table.id))["link"])
    viewer = await connect(gateway)
    await watch(viewer, table, link)
    other = await connect(**with_key(await add_key(service, "other", "broadcast")))
    assert await reason_of(other.call("broadcast.link", table=table.id)) == "not_entitled"
    await revoke_key(service)
    assert await viewer.wait_closed() == CloseCode.KEY_REVOKED
    assert str(await refusal(watch(await connect(gateway), table, link))) == NO_BROADCAST


async def test_every_refusal_of_a_link_has_one_sentence(table, time, connect, gateway) -> None:
    link = await link_of(table)
    rules: list[dict[str, Any]] = [{"broadcast": 1}, {}]
    others = [await seat_and_shuffle(connect, gateway, **each) for each in rules]
    time.pass_(SECONDS)
    stranger = await connect(gateway)
    for wrong in ("", "x", f"1.{link}", f"0{link}", link[:-1], link + "0", link.upper(), "é"):
        assert str(await refusal(watch(stranger, table, wrong))) == NO_BROADCAST, wrong
    for other in (*(each.id for each in others), "0" * 32):
        refused = stranger.call("table.watch", table=other, link=link)
        assert str(await refusal(refused)) == NO_BROADCAST
    for client in (stranger, table.players[0]):
        assert await reason_of(client.call("broadcast.link", table=table.id)) == "not_entitled"
    refused = await refusal(others[1].host.call("broadcast.link"))
    assert refused.reason == "bad_request"
    assert str(refused).startswith("This table was opened without the rule `broadcast`")
    for seconds in (-1, 86_401, 1.5, "5", True, None):
        opening = stranger.call("table.open", rules={"broadcast": seconds})
        assert str(await refusal(opening)) == (
            "The rule 'broadcast' must be 0 to 86400 seconds, a whole number."
        )


async def test_over_http_links_are_made_and_the_refusals_are_the_same(
    table, time, connect, gateway
) -> None:
    http = await Post.connect(gateway.port)
    link = (await http.call("broadcast.link", table=table.id, token=table.host_token))["link"]
    assert link == await link_of(table)
    without = await seat_and_shuffle(connect, gateway)
    asked: list[tuple[dict[str, Any], str, str]] = [
        ({"table": table.id}, "not_entitled", "This table is not open to spectators."),
        ({"table": table.id, "token": table.tokens[0]}, "not_entitled", "Only the host of a table"),
        ({"table": table.id, "token": link}, "bad_token", "This token is not valid"),
        (
            {"table": without.id, "token": without.host_token},
            "bad_request",
            "This table was opened",
        ),
        ({"table": "0" * 32, "token": table.host_token}, "unknown_table", "There is no such table"),
    ]
    for given, reason, sentence in asked:
        for method in ("broadcast.link", "broadcast.revoke"):
            if method == "broadcast.revoke" and reason == "bad_request":
                continue  # there is nothing to take back
            refused = await http.call(method, **given)
            assert refused["data"]["reason"] == reason, given
            assert refused["message"].startswith(sentence)
    watching = await http.call("table.watch", table=table.id, link=link)
    assert "send it over a WebSocket" in watching["message"]
    for seconds in (-1, 86_401, "5"):
        refused = await http.call("table.open", rules={"broadcast": seconds})
        assert refused["message"] == (
            "The rule 'broadcast' must be 0 to 86400 seconds, a whole number."
        )
    assert await http.call("broadcast.revoke", table=table.id, token=table.host_token) == {
        "revoked": True
    }
    http.writer.close()
    await http.writer.wait_closed()


async def test_viewers_are_no_spectators(table, time, connect, gateway) -> None:
    link, viewer = await link_of(table), await connect(gateway)
    time.pass_(SECONDS)
    before = await table.host.call("table.presence")
    await watch(viewer, table, link)
    assert await table.host.call("table.presence") == before


async def test_no_cosignature_says_how_far_the_players_are(time, gateway, connect) -> None:
    ann, viewer = await connect(gateway), await connect(gateway)
    table = (await ann.call("table.open", rules={"broadcast": SECONDS}))["table"]
    await ann.call("table.join", table=table, name="Ann", key=COSIGNER.public_key.hex())
    await ann.call("round.open", entropy="house")
    await ann.call("deck.shuffle")
    await ann.until(lambda: len(ann.notices("checkpoint")) >= 2)
    line = COSIGNER.cosign(ann.notices("checkpoint")[-1]["note"], time=START // 1000)
    await ann.call("table.cosign", cosignature=line)
    link = (await ann.call("broadcast.link"))["link"]
    time.pass_(SECONDS)
    answer = await viewer.call("table.watch", table=table, link=link)
    await viewer.until(lambda: viewer.notices("checkpoint"))
    for note in (answer["checkpoint"], *(each["note"] for each in viewer.notices("checkpoint"))):
        assert note.count("\n— ") == 1


async def test_a_viewer_that_read_slowly_is_sent_what_it_missed(
    table, time, gateway, connect, service
) -> None:
    link, viewer = await link_of(table), await connect(gateway)
    time.pass_(SECONDS)
    seen = await watch(viewer, table, link)
    (broadcast,) = service.broadcasts.watched.values()
    (subscription,) = broadcast.subscribers
    subscription.cursor -= 10  # what it would be if it had been paused for ten events
    await table.host.call("round.close")
    time.pass_(SECONDS)
    await viewer.until_version(seen["version"] + 1)
    assert viewer.versions[-11:] == list(range(seen["version"] - 9, seen["version"] + 2))
    assert viewer.notices("checkpoint")[-1]["size"] == seen["version"] + 1
    # The table is held as long as there is a viewer.
    assert broadcast.source.broadcasts == [broadcast]
    await viewer.close()
    await eventually(lambda: not service.broadcasts.watched)
    assert broadcast.source.broadcasts == []


async def test_a_practice_table_has_its_own_delay(time, gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    source = {"table": table.id, "round": 1}
    student = await connect(gateway)
    opened = await student.call("table.open", from_=source, rules={"broadcast": 0})
    state = (await student.call("table.state", table=opened["table"]))["state"]
    assert state["rules"]["broadcast"] == 0
    assert json.dumps(state["rules"]).count("broadcast") == 1


async def test_nothing_comes_early_at_another_node_or_after_a_restart(
    quick: None, open_node: OpenGateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The viewers of two nodes are sent the same, byte for byte, at its time, and so is a third's
    that starts later."""
    monkeypatch.setattr(presence, "DELAY", 0)
    time = Time()
    one, two = await open_node(), await open_node()
    use(time, one.context.service)
    use(time, two.context.service)
    table = await seat_and_shuffle(connect, one, players=2, broadcast=SECONDS, watch="nobody")
    link = await link_of(table)
    time.pass_(SECONDS)
    viewers = [await connect(node) for node in (one, two)]
    seen = [await watch(viewer, table, link) for viewer in viewers]
    assert seen[0] == seen[1]
    ann, bob = table.players
    await ann.call("deck.draw", count=2)
    time.pass_(100)
    await bob.call("deck.draw")
    await table.host.call("table.close")
    newest = await version_of(table)
    time.pass_(SECONDS - 100.001)
    three = await open_node()
    use(time, three.context.service)
    viewers.append(await connect(three))
    assert await watch(viewers[2], table, link) == seen[0]
    assert {viewer.versions[-1] for viewer in viewers} == {seen[0]["version"]}
    time.pass_(0.001)
    for viewer in viewers:
        await viewer.until_version(seen[0]["version"] + 2)
        assert viewer.versions == list(range(1, seen[0]["version"] + 3))
        assert all("private" in event for event in viewer.events[-2:])
    assert viewers[0].frames[-1] == viewers[1].frames[-1] == viewers[2].frames[-1]
    time.pass_(100)
    for viewer in viewers:
        await viewer.until_version(newest)
    assert viewers[0].events == viewers[1].events == viewers[2].events
    for node in (two, three, one):  # each reports whom it has
        watched = list(node.context.service.tables)
        await node.context.service.presence.exchange(watched)
    assert (await table.host.call("table.presence"))["watching"] == 0  # those of no node count
    await table.host.call("broadcast.revoke")
    for viewer in viewers:
        assert await viewer.wait_closed() == CloseCode.KEY_REVOKED
