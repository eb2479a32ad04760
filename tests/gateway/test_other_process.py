"""Questions at a house that has not heard yet what another one wrote to the same file."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.gateway import Gateway, serve
from dealer.service import Service
from tests.gateway.conftest import EAGER, Arrive


@pytest.fixture
async def other(gateway: Gateway, tmp_path: Path) -> AsyncIterator[Gateway]:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url) as log:
        service = Service(log, await open_house(log, key_file(url), fresh=secrets.token_bytes(32)))
        async with serve(service, port=0, limits=EAGER) as opened:
            yield opened
        await service.close()


async def test_who_asks_is_told_what_was_answered_elsewhere_before(
    gateway: Gateway, other: Gateway, arrive: Arrive
) -> None:
    here, there = await arrive(gateway), await arrive(other)
    opened = await here.ask("table.open")
    await there.ask("table.watch", table=opened["table"])
    for number in range(1, 4):
        joined = await here.ask("table.join", table=opened["table"], name=f"player {number}")
        seen = await there.ask("table.state", table=opened["table"])
        assert seen["version"] == joined["version"]
        assert len(seen["state"]["seats"]) == number
        await here.leave()
        here = await arrive(gateway)
