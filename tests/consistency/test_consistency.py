"""What other people's checkers say of histories, and that they find a lie of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.consistency.check import Checkers, check_runs
from tests.consistency.faulty_server import LIES
from tests.consistency.powercut_postgres import cut_postgres
from tests.consistency.run import one_run
from tests.consistency.setups import CLUSTER, SETUPS
from tests.harness.cluster import require_citus
from tests.harness.depth import amount

RUNS, OPERATIONS = amount(1, many=20), 800


@pytest.fixture(scope="module")
def checkers(tmp_path_factory: pytest.TempPathFactory) -> Checkers:
    return Checkers.build(tmp_path_factory.mktemp("checkers"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("setup", SETUPS)
async def test_no_checker_finds_a_fault(tmp_path: Path, checkers: Checkers, setup: str) -> None:
    if setup == CLUSTER:
        require_citus()
    result = await check_runs(
        tmp_path, runs=RUNS, operations=OPERATIONS, seed=1, setups=(setup,), checkers=checkers
    )
    assert result["found"] == []
    assert result["operations"] > RUNS * OPERATIONS
    assert result["setups"][setup]["faults_injected"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lie", LIES)
async def test_a_planted_lie_is_found(tmp_path: Path, checkers: Checkers, lie: str) -> None:
    """A doubled command needs one that was sent again, so a run may be without a lie."""
    for seed in range(5, 10):
        folder = tmp_path / str(seed)
        await one_run(folder, setup="sqlite", operations=OPERATIONS, seed=seed, lie=lie)
        if said := checkers.faults(folder):
            assert all(("heads of" in one) == (lie == "forked head") for one in said)
            return
    raise AssertionError(f"no checker found a {lie}")


@pytest.mark.timeout(900)
async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    figures = await cut_postgres(tmp_path, cuts=amount(4, many=12), seed=5)
    assert figures.faults == []
    assert figures.torn > 0
    assert figures.events > 0
