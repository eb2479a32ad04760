"""The list of open tables, asked for by many at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import DatabaseAway
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.lobby import Lobby


async def test_many_who_ask_at_once_are_one_question(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = [(await service.open_table({}))[0].table_id for _ in range(3)]
    await service.log.schedule(Projector().slice)
    fetch, asked = service.log.fetch, 0

    async def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return await fetch(*given)

    monkeypatch.setattr(service.log, "fetch", counted)
    lists = await asyncio.gather(*(service.lobby.tables() for _ in range(50)))
    assert asked == 1
    assert all({one["table"] for one in listed} == set(opened) for listed in lists)
    await service.lobby.tables()
    assert asked == 2


async def test_who_asks_after_a_failure_asks_anew() -> None:
    class Away:
        async def fetch(self, *_: object) -> None:
            raise DatabaseAway("away")

    log: Any = Away()
    lobby = Lobby(log)
    for _ in range(2):
        with pytest.raises(DatabaseAway):
            await lobby.tables()
