"""One address writes no more than its budget; `DEALER_GREEDY=600` runs for as many seconds."""

from __future__ import annotations

import os
from pathlib import Path

from tests.chaos.greedy import exhaust_budget

SECONDS = int(os.environ.get("DEALER_GREEDY", "6"))


async def test_one_address_writes_no_more_than_its_budget(tmp_path: Path) -> None:
    figures = await exhaust_budget(tmp_path, seconds=SECONDS, seed=SECONDS, burst=2e6)
    assert figures.faults == []
    assert figures.refused > 0
    assert figures.written > 1, "the attack wrote nothing"
    assert figures.draws > 0
