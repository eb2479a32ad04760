"""Runs the model checker Spin on a model of this folder."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.harness.installed import missing

HERE = Path(__file__).parent


class Result(NamedTuple):
    """What a search found: `fault` is the violated assertion, None if there is none."""

    states: int
    fault: str | None


def check(model: str, *, folder: Path, defines: Iterable[str] = (), quick: bool = False) -> Result:
    """Search all states of a model in this folder; `defines` are passed to its preprocessor.

    `folder` is an empty folder for the generated program; a `quick` compilation saves time where
    a short search finds a fault. Raises RuntimeError if the search does
    not end normally or is not exhaustive.
    """
    spin = shutil.which("spin") or missing("spin is not installed (Debian: spin)")
    compiler = shutil.which("cc") or missing("no C compiler is installed (Debian: gcc)")
    shutil.copy(HERE / model, folder / model)
    _run([spin, "-a", *(f"-D{name}" for name in defines), model], folder)
    _run(
        [compiler, "-O0" if quick else "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"],
        folder,
    )
    printed = _run(["./pan", "-n", "-m1000000"], folder)
    errors = re.search(r"errors: (\d+)", printed)
    states = re.search(r"(\d+) states, stored", printed)
    fault = re.search(r"^pan:1: (.*) \(at depth", printed, re.MULTILINE)
    if errors is None or states is None or (errors[1] == "0") != (fault is None):
        raise RuntimeError(printed)
    if fault is None and ("not completed" in printed or "max search depth too small" in printed):
        raise RuntimeError(f"The search of {model} is not exhaustive:\n{printed}")
    return Result(int(states[1]), None if fault is None else fault[1])


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout
