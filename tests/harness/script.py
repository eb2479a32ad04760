"""Command line of the trials: `python tests/chaos/<name>.py <count> [seed]` prints one line.

Trials that run on an SQLite file as well as on several PostgreSQL nodes have `--nodes 2`.
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
    """Run `trial(folder, <count>=…, seed=…)` in a temporary folder; return the exit code.

    With `several`, the trial takes the number of `nodes` as well. It returns a dataclass of
    figures, among them `faults`, a list of sentences.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument(count, type=int, nargs="?", default=default)
    parser.add_argument("seed", type=int, nargs="?", default=None, help="of the random choices")
    if several:
        parser.add_argument("--nodes", type=int, default=1, help="over one PostgreSQL server")
    arguments = vars(parser.parse_args())
    if arguments["seed"] is None:
        arguments["seed"] = secrets.randbelow(2**32)
    shown = f", nodes {arguments['nodes']}" if several else ""
    with tempfile.TemporaryDirectory(prefix="dealer-trial-") as folder:
        figures = asyncio.run(_awaited(trial(Path(folder), **arguments)))
    print(Path(sys.argv[0]).stem + ": " + line(figures) + shown + f", seed {arguments['seed']}")
    for fault in figures.faults:
        print(f"FAULT: {fault}")
    return 1 if figures.faults else 0


async def _awaited(trial: Awaitable[Any]) -> Any:
    return await trial


def line(figures: Any) -> str:
    """Every figure with its name; of a list, its length; those of a part in parentheses."""
    return _line(asdict(figures))


def _line(figures: dict[str, Any]) -> str:
    shown = [f"{name.replace('_', ' ')} {_shown(value)}" for name, value in figures.items()]
    return ", ".join(shown)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"({_line(value)})"
    return str(len(value) if isinstance(value, list) else value)
