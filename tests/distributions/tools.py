"""Programs of packagers, which `.ci/run` installs into build/tools; copies of the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.harness.installed import missing
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "tools" / "bin" / "python"


def run(command: list[str | Path], *, cwd: Path = ROOT, **environment: str) -> str:
    """What a program prints; the test fails if the program does."""
    return output_of(*command, cwd=cwd, env=os.environ | environment, timeout=120)


def python_with(module: str, package: str) -> list[str | Path]:
    """The command that runs a module of the tools."""
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", f"import {module}"]).returncode:
        missing(f"{package} is not installed: build/tools/bin/pip install {package} (see .ci/run)")
    return [PYTHON, "-W", "ignore", "-m", module]


def source_files() -> list[str]:
    """The paths of the repository's files; in an unpacked source distribution, of all files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if listed.returncode:
        missing("the tree is no git repository, so its files are not known")
    return sorted(path for path in listed.stdout.splitlines() if (ROOT / path).is_file())


def copied_tree(to: Path, *, modified: int) -> Path:
    """A copy of the source tree, whose files all have this time, and a cache that names it."""
    for path in source_files():
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
        os.utime(target, (modified, modified))
    cache = to / "dealer" / "__pycache__"
    cache.mkdir()
    (cache / f"errors.cpython-3{sys.version_info.minor}.pyc").write_bytes(b"%d" % modified)
    return to
