"""Practice tables that are refused: one sentence each, the same over sockets and by POST."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dealer.game.cards import build
from dealer.game.commands import CloseRound, OpenRound
from dealer.gateway.rate_limit.costs import practice_bytes_written
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.gateway.conftest import TEST_LIMITS, serving
from tests.gateway.rpc_client import Refusal, RpcClient, reason_of, refusal
from tests.gateway.tables import seat_and_shuffle
from tests.gateway.test_archived import archive, close_and_archive
from tests.gateway.test_post import Post
from tests.gateway.test_practice import hearts, open_from
from tests.harness.service_keys import add_key
from tests.service.tables import HOST


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service with a folder of archived tables."""
    folder = tmp_path / "archive"
    folder.mkdir()
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with open_service(url, ServiceOptions(archive=folder)) as service:
        yield service


class Asker:
    """Opens practice tables over a socket and by POST, and expects the same refusal of both."""

    def __init__(self, socket: RpcClient, post: Post) -> None:
        self.socket, self.post = socket, post

    async def refused(self, members: Any = None, **source: Any) -> tuple[int, str | None, str]:
        """Code, reason and sentence."""
        params = {"from": source, **(members or {})}
        error = (await refusal(self.socket.call("table.open", **params))).error
        assert error == await self.post.call("table.open", **params)
        return error["code"], error.get("data", {}).get("reason"), error["message"]

    async def says(self, members: Any = None, **source: Any) -> str:
        return (await self.refused(members, **source))[2]


@pytest.fixture
async def asker(gateway, connect) -> AsyncIterator[Asker]:
    post = await Post.connect(gateway.port)
    yield Asker(await connect(gateway), post)
    post.writer.close()


async def test_rounds_and_versions(gateway, connect, asker) -> None:
    table, _ = await hearts(connect, gateway)
    one = {"table": table.id, "round": 1}
    assert await asker.says(table=table.id, round=2) == (
        "That table has no round 2: it has 1 so far."
    )
    end = (await table.host.call("table.state"))["version"]
    await table.host.call("round.open", entropy="house")
    await table.host.call("deck.shuffle")
    now = (await table.host.call("table.state"))["version"]
    for version in (1, 2, end, now - 1, now):  # before the round, its end, inside a running round
        assert await asker.says(**one, version=version) == (
            f"Version {version} is not of round 1: choose one from its RoundOpened to the last one "
            "before its RoundClosed."
        )
    assert (await asker.says(**one, version=now + 1)).startswith(
        f"This table has no version {now + 1}"
    )
    for version in (None, 1, now):
        running = await asker.refused(table=table.id, round=2, version=version)
        assert running[1] == "not_entitled"
        assert running[2].startswith("Round 2 is still open: ")


@pytest.mark.parametrize("value", ["57", 57.5, 0, -1, True, [57], {}, 2**53, "", "last"])
async def test_what_is_no_version_and_no_round(gateway, connect, asker, value) -> None:
    table, _ = await hearts(connect, gateway)
    for given in ({"round": 1, "version": value}, {"round": value}):
        assert [*given][-1] in await asker.says(table=table.id, **given)


@pytest.mark.parametrize(
    "source",
    [
        {"round": 1},
        {"table": "00" * 16},
        {"table": 5, "round": 1},
        {"table": "00" * 16, "round": 1, "root": "00" * 32},
        {"table": "00" * 16, "round": 1, "token": 5},
    ],
)
async def test_what_is_no_source(asker, source) -> None:
    assert (await asker.refused(**source))[0] == -32602


async def test_what_does_not_go_with_a_source(gateway, connect, asker) -> None:
    table, _ = await hearts(connect, gateway)
    beside: list[dict[str, Any]] = [{"rules": {"seats": 2}}, {"deck": "52"}, {"seats": 2}]
    for members in beside:
        assert await asker.says(members, table=table.id, round=1) == (
            "A practice table has its source's rules: leave out deck, seats and rules, all "
            "but `broadcast`."
        )
    rules = {"practice": {"table": table.id, "round": 1, "version": 4, "root": "00" * 32}}
    forged: list[dict[str, Any]] = [rules, {"practice": {}}, {"practice": True}]
    for given in forged:
        refused = await refusal(asker.socket.call("table.open", rules=given))
        assert refused.error == await asker.post.call("table.open", rules=given)
        assert "practice" in str(refused)


async def test_cards_that_wait_to_be_passed(gateway, connect, asker) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    await table.host.call("deck.deal", each=3)
    versions = []
    for client, seat, to in ((table.players[0], 1, 2), (table.players[1], 2, 1)):
        slots = (await client.call("table.state"))["state"]["round"]["stacks"][f"hand:{seat}"]
        versions.append((await client.call("hand.pass", cards=slots[:1], to=to))["version"])
    await table.host.call("round.close")
    waiting, delivered = versions
    assert "cards wait to be passed" in (await asker.says(table=table.id, round=1, version=waiting))
    await open_from(connect, gateway, 2, table=table.id, round=1, version=delivered)


async def test_unknown_and_private_sources_are_refused_alike(gateway, connect, asker) -> None:
    private = await seat_and_shuffle(connect, gateway, players=1, watch="nobody", name="Ours")
    await private.host.call("round.close")
    await private.host.call("round.open", entropy="house")
    unknown = await asker.refused(table="00" * 16, round=1)
    for source in (
        {"table": private.id, "round": 1},
        {"table": private.id, "round": 2},
        {"table": private.id, "round": 9, "version": 10**9},
        {"table": private.id, "round": 1, "token": "s" * 40},
        {"table": "nothing", "round": 1},
        {"table": "00" * 16, "round": 1, "token": private.tokens[0]},
    ):
        assert await asker.refused(**source) == unknown, source
    (token,) = private.tokens
    opened = await asker.socket.call(
        "table.open", **{"from": {"table": private.id, "round": 1, "token": token}}
    )
    rules = (await asker.socket.call("table.state"))["state"]["rules"]  # it is at one table only
    assert rules["watch"] == "nobody"
    assert "name" not in rules
    stranger = await connect(gateway)
    with pytest.raises(Refusal):
        await stranger.call("table.state", table=opened["table"])


async def test_an_archived_source(gateway, connect, asker, tmp_path) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    await close_and_archive(tmp_path, table)
    for version in (None, 4, 10**9):
        found = await asker.refused(table=table.id, round=1, version=version)
        assert found[1:] == (
            "table_archived",
            "This table is closed and archived; its bundle can still be downloaded and verified.",
        )


@pytest.mark.parametrize("by", ["cmd", "ref"])
async def test_a_repetition_does_not_read_its_source_again(
    service, gateway, connect, asker, tmp_path, by
) -> None:
    """Archived or not, the first answer is given, and there is one practice table."""
    key = None if by == "cmd" else await add_key(service)
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    asking: dict[str, Any] = {"from": {"table": table.id, "round": 1}, by: "c" * 40}
    clients = [await connect(gateway) for _ in range(3)]
    if key is not None:
        for client in clients:
            await client.call("session.hello", key=key)
    opened = await clients[0].call("table.open", **asking)
    await table.host.call("table.close")
    await archive(tmp_path, table.id)
    assert await clients[1].call("table.open", **asking) == opened
    assert await asker.post.call("table.open", key=key, **asking) == opened
    other = {**asking, "name": "Other"}
    assert await reason_of(clients[2].call("table.open", **other)) == "command_reused"
    late = {**asking, by: "d" * 40}
    assert await reason_of(clients[2].call("table.open", **late)) == "table_archived"


async def test_a_round_with_a_test_deck(connect, asker, tmp_path) -> None:
    """A server with such decks says so; all others do not have the table at all."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    insecure = open_service(url, ServiceOptions(insecure_test_decks=True))
    async with serving(insecure) as other:
        table = await seat_and_shuffle(connect, other, players=1)
        await table.host.call("round.close")
        refused = await refusal(
            table.host.call("table.open", **{"from": {"table": table.id, "round": 1}})
        )
        assert str(refused) == (
            "That table has an insecure test deck, whose rounds prove nothing: play on from a "
            "round of another table."
        )
    unknown = await asker.refused(table="00" * 16, round=1)
    assert await asker.refused(table=table.id, round=1) == unknown


async def test_budgets_count_a_practice_table_as_any_other(
    open_gateway, connect, stop_clock
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables_per_hour=3.0))
    clock = stop_clock(gateway)
    table = await seat_and_shuffle(connect, gateway, players=1)
    await table.host.call("round.close")
    source = {"from": {"table": table.id, "round": 1}}
    await (await connect(gateway)).call("table.open", **source)
    refused_source = {"from": {"table": table.id, "round": 2}}
    for _ in range(3):  # what is refused does not count
        assert "no round 2" in str(
            await refusal((await connect(gateway)).call("table.open", **refused_source))
        )
    await (await connect(gateway)).call("table.open", **source)
    caught = await refusal((await connect(gateway)).call("table.open", **source))
    assert caught.reason == "rate_limited"
    assert "opened the maximum number of tables" in str(caught)
    clock.now += 1201
    await (await connect(gateway)).call("table.open", **source)


async def test_a_practice_table_costs_what_it_writes(
    service, open_gateway, connect, stop_clock
) -> None:
    table, _ = await service.open_table({})
    await service.execute(table, OpenRound(HOST, build(), "house", 100, 100))
    await service.execute(table, CloseRound(HOST))
    burst = 0.9 * practice_bytes_written(52)
    limits = replace(TEST_LIMITS, address_bytes=1000.0, address_bytes_burst=burst)
    gateway = await open_gateway(limits=limits)
    stop_clock(gateway)
    for params in ({}, {}, {"from": {"table": table.table_id, "round": 1}}):
        await (await connect(gateway)).call("table.open", **params)
    refused = await refusal((await connect(gateway)).call("table.open"))
    assert refused.reason == "rate_limited"
    assert "disk writes" in str(refused)
