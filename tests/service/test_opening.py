"""What somebody may open a table with, and what of it the database learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dealer.errors import BadRequest
from dealer.eventlog.server import is_postgres
from dealer.game.commands import TakeSeat
from dealer.proof.verify import verify
from dealer.service import Service
from tests.postgres import asked

CMD = "a-command-id-that-nobody-guesses"


def nested(depth: int) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for _ in range(depth - 1):
        rules = {"a": rules}
    return rules


async def test_rules_are_no_deeper_than_a_verifier_reads(service: Service) -> None:
    """The leaf that they stand in is two objects deeper than they are."""
    resident, _ = await service.open_table(nested(254))
    lines = [line async for line in service.bundle(resident)]
    assert verify(lines).fault is None
    with pytest.raises(BadRequest, match="deep"):
        await service.open_table(nested(255))


def all_of(url: str) -> list[bytes]:
    """Every row of a database on a server, as bytes."""
    return [
        b"".join(each if isinstance(each, bytes) else str(each).encode() for each in row)
        for table in ("stream", "event", "checkpoint", "house")
        for row in asked(url, f"SELECT * FROM {table}")
    ]


async def test_no_id_that_is_as_good_as_a_token_is_in_the_database(
    service: Service, url: str, tmp_path: Path
) -> None:
    """Sent again it is answered with the host's or the seat's token."""
    sent = {"cmd": CMD, "content": b"x"}
    resident, first = await service.open_table({}, **sent)
    seat = await service.call(resident, TakeSeat("Ann"), scope="new", **sent)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240
    if is_postgres(url):
        kept += b"".join(all_of(url))
    assert resident.id in kept
    assert CMD.encode() not in kept
    assert (await service.open_table({}, **sent))[1] == first
    assert await service.call(resident, TakeSeat("Ann"), scope="new", **sent) == seat
