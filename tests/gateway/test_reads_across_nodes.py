"""Reads at a node that has no notice yet of what another one wrote to the same file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.gateway import Gateway
from tests.gateway.conftest import Connect, serving
from tests.service.bare_service import bare_service


@pytest.fixture
async def other(gateway: Gateway, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with serving(bare_service(f"sqlite:///{tmp_path / 'dealer.db'}")) as node:
        yield node


async def test_a_read_has_what_another_node_acknowledged_before(
    gateway: Gateway, other: Gateway, connect: Connect
) -> None:
    here, there = await connect(gateway), await connect(other)
    opened = await here.call("table.open")
    await there.call("table.watch", table=opened["table"])
    for number in range(1, 4):
        joined = await here.call("table.join", table=opened["table"], name=f"player {number}")
        seen = await there.call("table.state", table=opened["table"])
        assert seen["version"] == joined["version"]
        assert len(seen["state"]["seats"]) == number
        await here.close()
        here = await connect(gateway)
