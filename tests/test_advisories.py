"""The least versions of what dealer needs at run time have no fault that is known."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = ["pyproject.toml", ".client/pyproject.toml"]
NOT_AT_RUN_TIME = {"docs", "test"}

ADVISORIES: dict[str, Any] = tomllib.loads((ROOT / ".github/advisories.toml").read_text())


def needed() -> Iterator[tuple[str, Requirement]]:
    """What each distribution and its extras need, with the file that says so."""
    for file in DISTRIBUTIONS:
        project = tomllib.loads((ROOT / file).read_text())["project"]
        extras = project.get("optional-dependencies", {})
        at_run_time = [extras[name] for name in extras if name not in NOT_AT_RUN_TIME]
        for given in [*project["dependencies"], *(one for extra in at_run_time for one in extra)]:
            yield file, Requirement(given)


NEEDED = list(needed())


@pytest.mark.parametrize(
    ("file", "requirement"), NEEDED, ids=[f"{file}-{one.name}" for file, one in NEEDED]
)
def test_the_least_version_has_no_known_fault(file: str, requirement: Requirement) -> None:
    (least,) = [
        Version(one.version) for one in requirement.specifier if one.operator in (">=", "==")
    ]
    known = ADVISORIES[canonicalize_name(requirement.name)].get("advisories", [])
    open_faults = {one["id"]: one["fixed"] for one in known if least < Version(one["fixed"])}
    assert not open_faults, f"{file}: {requirement} allows versions with these faults"


def test_the_list_has_what_is_needed_and_its_days() -> None:
    assert set(ADVISORIES) == {canonicalize_name(one.name) for _, one in NEEDED}
    for package, entry in ADVISORIES.items():
        known = [each["known"] for each in entry.get("advisories", [])]
        assert all(day <= entry["asked"] for day in known), package
