"""Trials as scripts: `python tests/whole/<name>.py <count> [seed]` prints one line of figures.

Those that one house over a file goes through, and several over a server, too, take `--nodes 2`.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any


def run(
    doc: str | None,
    trial: Callable[..., Awaitable[Any]],
    *,
    count: str,
    default: int,
    several: bool = False,
) -> int:
    """Run `trial(folder, <count>=…, seed=…)` in a folder of its own; the exit code.

    `several` is for a trial that is told how many `nodes` there should be, too.

    The trial gives a dataclass of figures, among them `faults`, a list of sentences.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument(count, type=int, nargs="?", default=default)
    parser.add_argument("seed", type=int, nargs="?", default=None, help="of what is left to chance")
    if several:
        parser.add_argument("--nodes", type=int, default=1, help="over one PostgreSQL server")
    asked = vars(parser.parse_args())
    if asked["seed"] is None:
        asked["seed"] = secrets.randbelow(2**32)
    told = f", nodes {asked['nodes']}" if several else ""
    with tempfile.TemporaryDirectory(prefix="dealer-trial-") as folder:
        figures = asyncio.run(trial(Path(folder), **asked))  # type: ignore[arg-type]
    print(Path(sys.argv[0]).stem + ": " + line(figures) + told + f", seed {asked['seed']}")
    for fault in figures.faults:
        print(f"FAULT: {fault}")
    return 1 if figures.faults else 0


def line(figures: Any) -> str:
    """Every figure with its name, and how many faults there were."""
    told = [
        f"{name.replace('_', ' ')} {len(value) if isinstance(value, list) else value}"
        for name, value in asdict(figures).items()
    ]
    return ", ".join(told)
