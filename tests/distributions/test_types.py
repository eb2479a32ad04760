"""The types of the client for its users: strict with mypy and pyright, and none missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from dealer import __version__
from tests.distributions.tools import ROOT, python_with, run
from tests.harness.installed import missing
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

PYRIGHT = ROOT / "build" / "node_modules" / "pyright" / "index.js"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the client's wheel, whose other packages are those of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    hatchling = python_with("hatchling", "hatchling")
    run([*hatchling, "build", "-t", "wheel", "-d", folder], cwd=ROOT / ".client")
    venv.create(folder / "venv")
    (packages,) = (folder / "venv" / "lib").glob("python3.*/site-packages")
    with zipfile.ZipFile(folder / f"dealer_client-{__version__}-py3-none-any.whl") as wheel:
        wheel.extractall(packages)
    (ours,) = {path for path in sys.path if path.endswith("site-packages")}
    for name in ("cryptography", "websockets"):
        (packages / name).symlink_to(Path(ours, name))
    shutil.copy(Path(__file__).with_name("typed_program.py"), folder)
    return folder


def pyright(environment: Path, *arguments: str) -> dict[str, object]:
    if not PYRIGHT.exists():
        missing("pyright is not installed (npm install --prefix build pyright)")
    path = f"{environment / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    printed = run(
        [node(), PYRIGHT, "--outputjson", *arguments],
        cwd=environment, PATH=path, VIRTUAL_ENV=str(environment / "venv"),
    )  # fmt: skip
    found: dict[str, object] = json.loads(printed)
    return found


def test_a_program_is_strict_with_mypy(environment: Path) -> None:
    python = environment / "venv" / "bin" / "python"
    run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", python,
         "--cache-dir", environment / "cache", "typed_program.py"],
        cwd=environment, MYPYPATH="",
    )  # fmt: skip


def test_a_program_is_strict_with_pyright(environment: Path) -> None:
    (environment / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    summary = pyright(environment, "typed_program.py")["summary"]
    assert isinstance(summary, dict)
    assert (summary["filesAnalyzed"], summary["errorCount"], summary["warningCount"]) == (1, 0, 0)


def test_no_public_type_is_missing(environment: Path) -> None:
    found = pyright(environment, "--verifytypes", "dealer", "--ignoreexternal")
    report = found["typeCompleteness"]
    assert isinstance(report, dict)
    unknown = [
        symbol["name"]
        for symbol in report["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
    ]
    assert unknown == []
    assert report["exportedSymbolCounts"]["withKnownType"] > 1000
