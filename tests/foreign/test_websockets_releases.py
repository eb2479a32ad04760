"""The gateway overrides internals of `websockets`, so the releases that it allows are tested."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.harness.installed import in_ci
from tests.harness.server_process import ROOT

SOCKET_TESTS = ("fast_frames", "request_head", "hostile_connections", "limits", "slow_clients")


def allowed() -> Requirement:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (found,) = (
        one for one in map(Requirement, project["dependencies"]) if one.name == "websockets"
    )
    return found


def test_releases_with_other_internals_are_not_allowed() -> None:
    bounds = {bound.operator: bound.version for bound in allowed().specifier}
    assert set(bounds) == {">=", "<"}
    assert int(bounds["<"]) == int(version("websockets").partition(".")[0]) + 1


@pytest.mark.skipif(not in_ci(), reason="installs a release from the package index")
def test_the_gateway_works_with_the_lowest_allowed_release(tmp_path: Path) -> None:
    (lowest,) = (bound.version for bound in allowed().specifier if bound.operator == ">=")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, f"websockets=={lowest}"], check=True)
    files = [f"tests/gateway/test_{name}.py" for name in SOCKET_TESTS]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "--no-cov", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stdout
