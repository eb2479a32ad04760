"""Rules and command ids of new tables, and what the database stores of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dealer.errors import BadRequest
from dealer.eventlog.address import is_postgres
from dealer.game.commands import TakeSeat
from dealer.proof.verify import verify
from dealer.service import IdempotencyKey, Service
from dealer.service.tables.execution import ANONYMOUS_SCOPE
from tests.harness.postgres import query

CMD = "a-command-id-that-is-unguessable"


def nested(depth: int) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for _ in range(depth - 1):
        rules = {"a": rules}
    return rules


async def test_rules_are_no_deeper_than_a_verifier_reads(service: Service) -> None:
    """The leaf that contains them has two more levels."""
    live_table, _ = await service.open_table(nested(254))
    lines = [line async for line in service.bundle(live_table)]
    assert verify(lines).fault is None
    for depth in (255, 300, 500, 990, 3_000, 100_000):
        with pytest.raises(BadRequest, match="Arrays and objects are nested more than 256 deep"):
            await service.open_table(nested(depth))


def all_rows(url: str) -> list[bytes]:
    """Every row of a PostgreSQL database, as bytes."""
    return [
        b"".join(each if isinstance(each, bytes) else str(each).encode() for each in row)
        for table in ("stream", "event", "checkpoint", "house")
        for row in query(url, f"SELECT * FROM {table}")
    ]


async def test_secret_command_ids_are_not_in_the_database(
    service: Service, url: str, tmp_path: Path
) -> None:
    """A repetition is answered with the host's or the seat's token."""
    sent: dict[str, Any] = {"key": IdempotencyKey(ANONYMOUS_SCOPE, CMD, b"x")}
    live_table, first = await service.open_table({}, **sent)
    seat = await service.execute(live_table, TakeSeat("Ann"), **sent)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240
    if is_postgres(url):
        stored += b"".join(all_rows(url))
    assert live_table.id in stored
    assert CMD.encode() not in stored
    assert (await service.open_table({}, **sent))[1] == first
    assert await service.execute(live_table, TakeSeat("Ann"), **sent) == seat
