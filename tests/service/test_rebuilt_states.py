"""The state of any version is the same, whichever program rebuilds it from the log."""

from __future__ import annotations

import pytest

from tests.harness.depth import amount
from tests.service.rebuilt_states import pairs


@pytest.mark.slow
async def test_random_states_of_random_tables_agree() -> None:
    tables, practised = await pairs(amount(200, many=5_000))
    assert tables > 1
    assert practised > 10
