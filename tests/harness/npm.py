"""Programs in node that use npm packages; without a package a test is skipped, and fails in CI."""

from __future__ import annotations

from pathlib import Path

from tests.harness.installed import missing
from tests.web.js_verifier import node

BUILD = Path(__file__).parents[2] / "build"
"""Where `.ci/run` installs the packages; the working directory of a program that imports them."""


def command(program: str, *arguments: str, packages: tuple[str, ...]) -> list[str]:
    """The command that runs an ES module in `BUILD`; its arguments are `process.argv.slice(1)`."""
    absent = [one for one in packages if not (BUILD / "node_modules" / one).is_dir()]
    if absent:
        missing(f"not installed: npm install --prefix build {' '.join(absent)} (see .ci/run)")
    return [node(), "--input-type=module", "--eval", program, "--", *arguments]
