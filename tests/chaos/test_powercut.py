"""Power cuts under the database."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.chaos.powercut import cut_power
from tests.harness.depth import amount
from tests.harness.disk_trace import CREATE, SYNC, TRUNCATE, WRITE, Disk, Step
from tests.harness.installed import missing

CUTS = amount(5, many=100)


@pytest.mark.parametrize("commit", ["thread", "loop"])
async def test_a_power_cut_loses_no_acknowledged_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str
) -> None:
    monkeypatch.setenv("DEALER_COMMIT", commit)
    if shutil.which("gcc") is None:
        missing("gcc is not installed")
    figures = await cut_power(tmp_path, cuts=CUTS, seed=CUTS)
    assert figures.faults == []
    assert (figures.lost, figures.halves) == (0, 0)
    assert figures.cuts_after_first_answer > CUTS // 4
    assert figures.lost_with_normal > 0, "the check does not detect lost events"


def step(kind: int, *, offset: int = 0, length: int = 0, data: bytes = b"") -> Step:
    return Step(kind, 7, offset, length or len(data), ["file"], memoryview(data), 0)


@pytest.mark.parametrize("seed", range(20))
def test_synced_bytes_survive_and_others_in_whole_sectors(tmp_path: Path, seed: int) -> None:
    disk = Disk(folder=1)
    for one in (
        step(CREATE),
        step(WRITE, data=b"a" * 2048),
        step(SYNC),
        step(SYNC)._replace(inode=1),
        step(WRITE, offset=100, data=b"b" * 1000),
        step(TRUNCATE, length=1536),
    ):
        disk.take(one)
    disk.cut(tmp_path / "after", random.Random(seed))
    found = (tmp_path / "after" / "file").read_bytes()
    assert len(found) in (1536, 2048)
    assert found[:100] == b"a" * 100
    assert found[1100:] == b"a" * (len(found) - 1100)
    for begin, end in ((100, 512), (512, 1024), (1024, 1100)):
        assert set(found[begin:end]) in ({ord("a")}, {ord("b")})


def test_a_file_name_that_was_not_synced_may_be_lost(tmp_path: Path) -> None:
    disk, seen = Disk(folder=1), set()
    disk.take(step(CREATE))
    disk.take(step(WRITE, data=b"a"))
    for seed in range(20):
        disk.cut(tmp_path / "after", random.Random(seed))
        seen.add((tmp_path / "after" / "file").exists())
    assert seen == {True, False}
