"""Players of one table at different nodes: each is notified of what happens at the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from dealer.eventlog.hints import Hints
from dealer.gateway import Gateway, serve
from dealer.proof.checkpoint import Cosigner
from dealer.service import lookout
from dealer.service.opening import open_service
from tests.gateway.conftest import EAGER, Arrive
from tests.gateway.test_presence import here, told

PEN = Cosigner(bytes(range(32)))


class TwoNodes(NamedTuple):
    one: Gateway
    two: Gateway


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'dealer.db'}"
        return
    server = request.getfixturevalue("postgres")
    database = server.database()
    yield server.url(database)
    server.drop(database)


@pytest.fixture
async def nodes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TwoNodes]:
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 0.2)
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(2):
            service = await stack.enter_async_context(
                open_service(url, house_key=tmp_path / "house.key")
            )
            opened.append(await stack.enter_async_context(serve(service, port=0, limits=EAGER)))
        yield TwoNodes(*opened)


async def test_presence_counts_the_connections_of_all_nodes(
    nodes: TwoNodes, arrive: Arrive
) -> None:
    ann, bob, carol = [await arrive(node) for node in (nodes.one, nodes.two, nodes.two)]
    table = (await ann.ask("table.open"))["table"]
    await ann.ask("table.join", table=table, name="Ann")
    joined = await bob.ask("table.join", table=table, name="Bob")
    await carol.ask("table.watch", table=table)
    asked = await ann.ask("table.presence", table=table)
    if (here(asked), asked["watching"]) != ({1: True, 2: True}, 1):
        await told(ann, seat_1=True, seat_2=True, watching=1)
    asked = await bob.ask("table.presence", table=table)
    if here(asked) != {1: True, 2: True}:
        await told(bob, seat_1=True, seat_2=True, watching=1)
    await bob.leave()
    await told(ann, seat_1=True, seat_2=False, watching=1)
    # He comes back at the other node, and the spectator goes.
    back = await arrive(nodes.one)
    await back.ask("table.resume", table=table, token=joined["token"], after=0)
    await told(ann, seat_1=True, seat_2=True, watching=1)
    await carol.leave()
    await told(ann, seat_1=True, seat_2=True, watching=0)


async def test_a_node_that_drains_takes_its_players_with_it(
    nodes: TwoNodes, arrive: Arrive
) -> None:
    ann, bob = await arrive(nodes.one), await arrive(nodes.two)
    table = (await ann.ask("table.open"))["table"]
    await ann.ask("table.join", table=table, name="Ann")
    await bob.ask("table.join", table=table, name="Bob")
    if here(await ann.ask("table.presence", table=table)) != {1: True, 2: True}:
        await told(ann, seat_1=True, seat_2=True)
    await nodes.two.drain()
    await nodes.two.floor.service.presence.close()
    await told(ann, seat_1=True, seat_2=False)


@pytest.mark.parametrize("hints", ["hints", "no hints"])
async def test_a_cosignature_reaches_the_other_node(
    nodes: TwoNodes, arrive: Arrive, hints: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hints == "no hints":
        monkeypatch.setattr(Hints, "tell", lambda self, tables: None)
    ann, bob = await arrive(nodes.one), await arrive(nodes.two)
    table = (await ann.ask("table.open"))["table"]
    await ann.ask("table.join", table=table, name="Ann", key=PEN.public_key.hex())
    await bob.ask("table.watch", table=table)
    await ann.ask("round.open", entropy="house")
    await ann.ask("deck.shuffle")
    await bob.until(lambda: len(bob.notices("checkpoint")) >= 2)
    sealed = bob.notices("checkpoint")[-1]
    line = PEN.cosign(sealed["note"], time=1_800_000_000)
    await ann.ask("table.cosign", cosignature=line)
    wanted = sealed | {"note": sealed["note"] + line}
    await bob.until(lambda: wanted in bob.notices("checkpoint"))
