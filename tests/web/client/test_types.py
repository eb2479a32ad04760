"""The types of the client: an example program type-checks strictly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.installed import missing
from tests.harness.programs import output_of
from tests.web.js_verifier import node

ROOT = Path(__file__).parents[3]
TYPESCRIPT = ROOT / "build/node_modules/typescript/bin/tsc"
OPTIONS = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom",
]


@pytest.mark.slow
def test_a_typed_program_compiles(tmp_path: Path) -> None:
    program = node()
    if not TYPESCRIPT.exists():
        missing("typescript is not installed (npm install --prefix build typescript)")
    shutil.copy(ROOT / "dealer/web/client.d.ts", tmp_path)
    shutil.copy(ROOT / "dealer/web/package.json", tmp_path)
    shutil.copy(Path(__file__).with_name("typed_program.ts"), tmp_path)
    output_of(program, TYPESCRIPT, *OPTIONS, "typed_program.ts", cwd=tmp_path)
