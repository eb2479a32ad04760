"""Players of one table at different nodes: each is notified of what happens at the other."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from dealer.eventlog.postgres.reader import Notifier
from dealer.gateway import Gateway
from dealer.proof.checkpoint import Cosigner
from dealer.service.nodes import head_poller
from tests.gateway.conftest import Connect, OpenGateway
from tests.gateway.test_presence import connected, until_presence

COSIGNER = Cosigner(bytes(range(32)))


class TwoNodes(NamedTuple):
    one: Gateway
    two: Gateway


@pytest.fixture
async def nodes(open_node: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> TwoNodes:
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 0.2)
    return TwoNodes(await open_node(), await open_node())


async def test_presence_counts_the_connections_of_all_nodes(
    nodes: TwoNodes, connect: Connect
) -> None:
    ann, bob, carol = [await connect(node) for node in (nodes.one, nodes.two, nodes.two)]
    table = (await ann.call("table.open"))["table"]
    await ann.call("table.join", table=table, name="Ann")
    joined = await bob.call("table.join", table=table, name="Bob")
    await carol.call("table.watch", table=table)
    first = await ann.call("table.presence", table=table)
    if (connected(first), first["watching"]) != ({1: True, 2: True}, 1):
        await until_presence(ann, seat_1=True, seat_2=True, watching=1)
    first = await bob.call("table.presence", table=table)
    if connected(first) != {1: True, 2: True}:
        await until_presence(bob, seat_1=True, seat_2=True, watching=1)
    await bob.close()
    await until_presence(ann, seat_1=True, seat_2=False, watching=1)
    # Bob resumes at the other node, and the spectator disconnects.
    back = await connect(nodes.one)
    await back.call("table.resume", table=table, token=joined["token"], after=0)
    await until_presence(ann, seat_1=True, seat_2=True, watching=1)
    await carol.close()
    await until_presence(ann, seat_1=True, seat_2=True, watching=0)


async def test_the_players_of_a_drained_node_are_absent(nodes: TwoNodes, connect: Connect) -> None:
    ann, bob = await connect(nodes.one), await connect(nodes.two)
    table = (await ann.call("table.open"))["table"]
    await ann.call("table.join", table=table, name="Ann")
    await bob.call("table.join", table=table, name="Bob")
    if connected(await ann.call("table.presence", table=table)) != {1: True, 2: True}:
        await until_presence(ann, seat_1=True, seat_2=True)
    await nodes.two.drain()
    await nodes.two.context.service.presence.close()
    await until_presence(ann, seat_1=True, seat_2=False)


@pytest.mark.parametrize("hints", ["hints", "no hints"])
async def test_a_cosignature_reaches_the_other_node(
    nodes: TwoNodes, connect: Connect, hints: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hints == "no hints":
        monkeypatch.setattr(Notifier, "notify", lambda self, tables: None)
    ann, bob = await connect(nodes.one), await connect(nodes.two)
    table = (await ann.call("table.open"))["table"]
    await ann.call("table.join", table=table, name="Ann", key=COSIGNER.public_key.hex())
    await bob.call("table.watch", table=table)
    await ann.call("round.open", entropy="house")
    await ann.call("deck.shuffle")
    await bob.until(lambda: len(bob.notices("checkpoint")) >= 2)
    sealed = bob.notices("checkpoint")[-1]
    line = COSIGNER.cosign(sealed["note"], time=1_800_000_000)
    await ann.call("table.cosign", cosignature=line)
    cosigned = sealed | {"note": sealed["note"] + line}
    await bob.until(lambda: cosigned in bob.notices("checkpoint"))


@pytest.mark.parametrize("known", ["at once", "by a poll"])
@pytest.mark.parametrize(
    ("step", "after"), [("load", None), ("snapshot", None), ("load", 1), ("head", 1)]
)
async def test_what_another_node_commits_at_any_step_of_a_watch_is_shown_or_sent(
    nodes: TwoNodes,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    after: int | None,
    known: str,
) -> None:
    """Before the subscription, and between the version that is shown and the first event."""
    ann, bob = await connect(nodes.one), await connect(nodes.two)
    table = (await ann.call("table.open"))["table"]
    service = nodes.two.context.service
    owner = service.lifecycle if step == "load" else service.checkpoints
    method = getattr(owner, step)

    async def note() -> int:
        return int((await ann.call("table.note", kind="chat", text="x"))["version"])

    async def overtaken(*given: object) -> object:
        found = await method(*given)
        await note()
        if known == "at once":
            live_table = service.tables.get(table)
            assert live_table is not None
            await service.lifecycle.catch_up(live_table)
        return found

    monkeypatch.setattr(owner, step, overtaken)
    params = {} if after is None else {"after": after}
    watched = await bob.call("table.watch", table=table, **params)
    first = watched["version"] if after is None else after
    last = await note()
    await bob.until_version(last)
    assert bob.versions == [*range(first + 1, last + 1)]
