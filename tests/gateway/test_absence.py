"""A shuffle does not wait for players who were absent when it began, at any node."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.gateway.presence import absence
from dealer.proof.verify import verify
from dealer.service.nodes import head_poller
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import commit, nonce_of, seat_players

HOUR = {"commit_ms": 3_600_000, "reveal_ms": 3_600_000}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A player counts as absent at once."""
    monkeypatch.setattr(absence, "ABSENT_SECONDS", 0.0)
    monkeypatch.setattr(absence, "EXCHANGE_SECONDS", 0.5)
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 0.1)


async def until_absent(node: Any, table: str, *seats: int) -> None:
    """Wait until the node knows for a moment that these seats have no connection."""
    live_table = node.context.service.tables.get(table)
    absences, state = node.context.absences, live_table.table
    await eventually(
        lambda: all(absences.seconds(live_table, state.holder(seat)) > 0 for seat in seats)
    )


async def until_here(node: Any, table: str, seat: int) -> None:
    """Wait until the node knows of a connection of this seat at any node."""
    live_table = node.context.service.tables.get(table)
    absences, holder = node.context.absences, live_table.table.holder(seat)
    await eventually(lambda: not absences.seconds(live_table, holder))


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_shuffle_does_not_wait_for_an_absent_player(
    open_node: OpenGateway, connect: Connect, ahead: bool
) -> None:
    node = await open_node()
    table = await seat_players(connect, node, players=2)
    ann, bob = table.players
    await bob.close()
    await until_absent(node, table.id, 2)
    await table.host.call("round.open", **HOUR)
    if ahead:
        await commit(table, ann, 1)
    await table.host.call("deck.shuffle")
    if not ahead:
        assert "EntropyClosed" not in ann.types()
        await commit(table, ann, 1)
    await ann.until(lambda: "EntropyClosed" in ann.types())
    await ann.call("entropy.reveal", round=1, k=0, nonce=nonce_of(1).hex())
    await ann.until(lambda: "DeckSealed" in ann.types())
    await table.host.call("table.close")
    bundle = await get(node.port, f"/tables/{table.id}/bundle.jsonl")
    report = verify(bundle.body.decode().splitlines(), key=None)
    assert report.fault is None
    assert report.remarks.left_out == 1


async def test_a_connected_player_has_the_whole_time(
    open_node: OpenGateway, connect: Connect
) -> None:
    node = await open_node()
    table = await seat_players(connect, node, players=3)
    ann, bob, carol = table.players
    await carol.close()
    await until_absent(node, table.id, 3)
    await table.host.call("round.open", **HOUR)
    await commit(table, ann, 1)
    await table.host.call("deck.shuffle")
    # A player who comes back during the shuffle has it, too; and one who leaves then.
    back = await connect(node)
    await back.call("table.resume", table=table.id, token=table.tokens[2], after=0)
    await bob.close()
    await until_absent(node, table.id, 2)
    await table.host.call("table.note", kind="chat", text="a commit, after which it is checked")
    await commit(table, back, 3)
    await ann.until_version((await back.call("table.state"))["version"])
    assert "EntropyClosed" not in ann.types()
    bob = await connect(node)
    await bob.call("table.resume", table=table.id, token=table.tokens[1], after=0)
    await commit(table, bob, 2)
    await ann.until(lambda: "EntropyClosed" in ann.types())


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_players_at_other_nodes_are_waited_for(
    open_node: OpenGateway, connect: Connect
) -> None:
    """Carol is at no node: the shuffle waits for Bob, who is at the other, and not for her."""
    one, two = await open_node(), await open_node()
    table = await seat_players(connect, one, players=3)
    ann, bob, carol = table.players
    await bob.close()
    await carol.close()
    bob = await connect(two)
    await bob.call("table.resume", table=table.id, token=table.tokens[1], after=0)
    for node in (one, two):
        await until_absent(node, table.id, 3)
    await until_here(one, table.id, 2)
    await table.host.call("round.open", **HOUR)
    await commit(table, ann, 1)
    await table.host.call("deck.shuffle")
    await bob.until(lambda: "ShuffleStarted" in bob.types())
    assert "EntropyClosed" not in bob.types()
    await commit(table, bob, 2)
    await ann.until(lambda: "EntropyClosed" in ann.types())
    await bob.until(lambda: bob.types().count("EntropyCommitted") == 2)
