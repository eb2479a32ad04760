"""The examples of dealer/analysis/README.md run as they are printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dealer
from dealer.eventlog.address import database_file
from tests.analysis.conftest import Recorded
from tests.harness.installed import missing

pytestmark = pytest.mark.slow

README = Path(__file__).parents[2] / "dealer" / "analysis" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def run(program: str, on_sqlite: Recorded, folder: Path) -> str:
    shutil.copy(database_file(on_sqlite.url), folder / "dealer.db")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_first_example(on_sqlite: Recorded, tmp_path: Path) -> None:
    lines = run(EXAMPLES[0], on_sqlite, tmp_path).splitlines()
    assert lines[65].startswith("66 1793563215900 CardDrawn CardDrawn(round=1, seat=1, source=")
    assert lines[213] == "['As', 'Qs']"
    assert lines[214].startswith("0 sealed [(51, 0, (57668,)), ")
    assert lines[-1] == "True"


def test_the_asynchronous_example(on_sqlite: Recorded, tmp_path: Path) -> None:
    friday, saturday = run(EXAMPLES[1], on_sqlite, tmp_path).splitlines()
    assert friday.startswith("Friday ['CardMoved', 'NoteAdded', 'SeatLeft', 'SeatTaken'")
    assert saturday.endswith("'RoundClosed', 'TableClosed']")


def test_the_example_with_a_bundle(on_sqlite: Recorded, tmp_path: Path) -> None:
    with dealer.open_log(on_sqlite.url) as log:
        lines = log.bundle(log.tables()[0].table)
    (tmp_path / "game.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert run(EXAMPLES[2], on_sqlite, tmp_path) == "['Th', 'Kh', 'Jh'] 3\n"


def test_three_lines_with_pandas(on_sqlite: Recorded, tmp_path: Path) -> None:
    if find_spec("pandas") is None:
        missing("pandas is not installed (pip install pandas)")
    assert len(list(filter(None, EXAMPLES[3].splitlines()))) == 3
    assert "1       1      0    51\n" in run(EXAMPLES[3], on_sqlite, tmp_path)
