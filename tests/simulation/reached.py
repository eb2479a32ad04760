"""The branches of the program that schedules reach, by room: `--coverage`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage import Coverage

import dealer

ROOT = Path(dealer.__file__).parent


@contextmanager
def branches_printed() -> Iterator[None]:
    """Trace the block, in this process only, and then print a line for each room.

    Lines that run when a module is imported were not traced, so lines are not counted.
    """
    tracer = Coverage(branch=True, source=[str(ROOT)], data_file=None, config_file=False)
    tracer.start()
    try:
        yield
    finally:
        tracer.stop()
    reached, there = _by_room(tracer)
    for room in sorted(reached):
        print(
            f"{room}: {reached[room]} of {there[room]} branches, {reached[room] / there[room]:.0%}"
        )


def _by_room(tracer: Coverage) -> tuple[Counter[str], Counter[str]]:
    """Branches that were reached, and all, of the rooms of which any was reached."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        tracer.json_report(outfile=str(file), ignore_errors=True)
        files = json.loads(file.read_text())["files"]
    reached: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for name, measured in files.items():
        room = Path(name).resolve().relative_to(ROOT).parts[0].removesuffix(".py")
        reached[room] += measured["summary"]["covered_branches"]
        there[room] += measured["summary"]["num_branches"]
    return +reached, there
