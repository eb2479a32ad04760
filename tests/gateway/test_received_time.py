"""The time of an event is when its command came in, however long the database takes to write it."""

from __future__ import annotations

import asyncio

from tests.gateway.tables import seat_and_shuffle

COMMIT_MS = 60_000


async def test_the_log_keeps_when_a_command_came_in(gateway, connect, monkeypatch) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    (ann,) = table.players
    service = gateway.context.service
    clock, submit = [service.now() + 1_000_000], service.log.writer.submit
    monkeypatch.setattr(service.executor, "now", lambda: clock[0])
    held, came = [], asyncio.Event()

    def hold(append) -> None:
        held.append(append)
        came.set()

    monkeypatch.setattr(service.log.writer, "submit", hold)
    for thinking in (3_000, 5_500):
        clock[0] += thinking
        received = clock[0]
        draw = ann.send("deck.draw")
        await came.wait()
        came.clear()
        clock[0] += COMMIT_MS
        submit(held.pop())
        drawn = await draw
        await ann.until_version(drawn["version"])
        assert ann.events[-1]["at"] == received
    rows = await service.log.read(bytes.fromhex(table.id), after=drawn["version"] - 2)
    assert [row.type for row in rows] == ["CardDrawn", "CardDrawn"]
    assert rows[1].at - rows[0].at == COMMIT_MS + 5_500
