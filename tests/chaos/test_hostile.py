"""One hostile address against a server with its default limits.

Latencies are for the long trial. Here every attack is carried out, and afterwards the server must
answer, must have logged no internal error, and must have lost nothing of the honest players.
"""

from __future__ import annotations

from pathlib import Path

from tests.chaos.hostile import attack
from tests.chaos.hostile_bytes import BYTES
from tests.chaos.hostile_reads import READS
from tests.chaos.hostile_requests import REQUESTS
from tests.harness.depth import amount

SECONDS = amount(10.0, many=60.0)


async def test_honest_players_lose_nothing_to_a_hostile_address(tmp_path: Path) -> None:
    figures = await attack(tmp_path, seconds=SECONDS, seed=9)
    assert figures.faults == []
    assert set(figures.attacks) == REQUESTS.keys() | READS.keys() | BYTES.keys()
    assert figures.draws("attacked") > 0
    assert figures.measured.resumes > 0
