"""Servers with and without insecure test decks, and what clients and verifiers make of a table."""

from __future__ import annotations

import asyncio
from urllib.request import urlopen

import pytest

import dealer
from dealer.errors import BadRequest, UnknownTable
from dealer.proof.verify import verify
from dealer.proof.verify.replay import INSECURE
from dealer.service.service import ServiceOptions
from tests.harness.own_gateway import own_gateway
from tests.web.client.node_client import NodeClient
from tests.web.js_verifier import Bundle, compare

RULE = "insecure_test_deck"


async def play_stacked(server: str) -> tuple[str, list[str]]:
    """The id of a table whose deck is stacked, and the cards that were drawn there."""
    async with dealer.connect(server, name="Ada") as house:
        table = await house.join(await house.open(rules={RULE: {"order": ["As", "Ks", "Qs"]}}))
        await table.round_open()
        await table.shuffle()
        drawn = await table.draw(2)
        drawn += await table.draw(1, end="random")
        await table.round_close()
        assert table.insecure
        assert table.doubts == [INSECURE]
        assert table.evidence is None
        return table.id, drawn


def bundle_of(server: str, table: str) -> list[bytes]:
    pages = server.replace("ws://", "http://").removesuffix("/ws")
    with urlopen(f"{pages}/tables/{table}/bundle.jsonl") as answer:
        return list(answer.read().splitlines())


async def test_the_deck_is_stacked_and_no_verifier_accepts_it(tmp_path, caplog):
    async with own_gateway(tmp_path, ServiceOptions(insecure_test_decks=True)) as server:
        table, drawn = await play_stacked(server)
        lines = await asyncio.to_thread(bundle_of, server, table)
    assert drawn == ["As", "Ks", "Qs"]
    assert f"table {table}: {INSECURE}" in caplog.messages
    disagreements, (report,) = compare([Bundle("stacked", lines)])
    assert disagreements == []
    assert report.fault is not None
    assert (report.fault.check, report.fault.line) == ("tape", 1)
    assert report.fault.sentence == INSECURE


async def test_every_table_of_such_a_server_says_so(tmp_path):
    """Also where the tape shuffles: its bundle would pass without the rule."""
    async with own_gateway(tmp_path, ServiceOptions(insecure_test_decks=True)) as server:
        async with dealer.connect(server, name="Ada") as house:
            table = await house.join(await house.open())
            assert table.state.rules.given[RULE] is True
            await table.round_open()
            await table.shuffle()
            await table.close()
        report = verify(await asyncio.to_thread(bundle_of, server, table.id))
    assert report.fault is not None
    assert report.fault.sentence == INSECURE


async def test_a_server_without_them_opens_and_serves_no_such_table(tmp_path):
    async with own_gateway(tmp_path, ServiceOptions(insecure_test_decks=True)) as server:
        stacked, _ = await play_stacked(server)
    async with own_gateway(tmp_path) as server, dealer.connect(server, name="Ada") as house:
        for value in (True, {"seed": "x"}):
            with pytest.raises(BadRequest, match="not started with --insecure-test-decks"):
                await house.open(rules={RULE: value})
        with pytest.raises(UnknownTable, match="insecure test deck"):
            await house.watch(stacked)
        table = await house.join(await house.open())
        await table.round_open()
        await table.shuffle()
        await table.close()
        assert not table.insecure
        assert table.doubts == []
        assert verify(await asyncio.to_thread(bundle_of, server, table.id)).ok


async def test_a_table_that_this_server_opened_stays_honest_at_one_with_them(tmp_path):
    async with own_gateway(tmp_path) as server, dealer.connect(server, name="Ada") as house:
        opened = (await house.open()).id
        host = house._store.table(opened).record["host_token"]
    async with own_gateway(tmp_path, ServiceOptions(insecure_test_decks=True)) as server:
        async with dealer.connect(server, name="Ada") as house:
            house._store.table(opened).update(host_token=host)
            table = await house.watch(opened)
            await table.round_open(entropy="house")
            await table.shuffle()
            await table.close()
        assert verify(await asyncio.to_thread(bundle_of, server, opened)).ok


@pytest.mark.slow
async def test_the_javascript_client_raises_the_alarm(tmp_path):
    async with (
        own_gateway(tmp_path, ServiceOptions(insecure_test_decks=True)) as server,
        NodeClient() as clients,
    ):
        found = await clients.run(
            """
            const house = await client.connect(args.url, { name: "Ada" });
            const rules = { insecure_test_deck: { order: ["As", "Ks"] } };
            const table = await house.join(await house.open({ rules }));
            await table.roundOpen();
            await table.shuffle();
            const drawn = await table.draw(2);
            await table.roundClose();
            const { insecure, doubts, checks, error } = table;
            await house.close();
            return { drawn, insecure, doubts, checks, error };
            """,
            url=server,
        )
    assert found["drawn"] == ["As", "Ks"]
    assert found["insecure"] is True
    assert found["doubts"] == [INSECURE]
    assert found["error"] is None
    (check,) = [check for check in found["checks"] if check["name"] == "round"]
    assert (check["state"], check["sentence"]) == ("no", INSECURE)
