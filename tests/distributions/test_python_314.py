"""The newest Python, which comes as WebAssembly: no new warning, and the same numbers of a tape.

It has no sockets, so the server and the client are only compiled. `.ci/pythons` tests them on the
versions that a machine has.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from dealer.game.tape import Tape
from tests.distributions.tools import ROOT
from tests.harness import npm
from tests.harness.programs import output_of


@pytest.mark.slow
def test_modules_compile_and_the_pure_rooms_run() -> None:
    program = Path(__file__).with_name("python_314.mjs").read_text("utf-8")
    command = npm.command(program, str(ROOT), packages=("pyodide",))
    printed = json.loads(output_of(*command, cwd=npm.BUILD, timeout=120))
    tape = Tape(secret=bytes(32), nonces=[bytes(32)], root=bytes(32), k=0, n=52)
    assert printed["drawn"] == [tape.below(bound) for bound in range(52, 1, -1)]
    assert printed["files"] > 300
    assert printed["version"] >= [3, 14]


def test_the_versions_that_are_named_are_those_that_ci_tests() -> None:
    """3.14 has no classifier while only a part of dealer is tested on it."""
    for folder in (".", ".client"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        named = [each.split(" :: ")[-1] for each in project["classifiers"] if " :: 3." in each]
        assert named == ["3.11", "3.12", "3.13"]
    script = (ROOT / ".ci" / "pythons").read_text("utf-8")
    assert "versions=(3.12 3.13 3.14)" in script
