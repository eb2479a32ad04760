"""The models hold in every reachable state, and each planted fault is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.checker import HERE, check

pytestmark = pytest.mark.slow

TABLE = ("CRASHES=0",)
ARCHIVED = ("KEEPERS", "COMMANDS=2")

FAULTS = [
    ("table.pml", TABLE, "REPLY_BEFORE_COMMIT"),
    ("table.pml", TABLE, "PUBLISH_BEFORE_COMMIT"),
    ("table.pml", TABLE, "REFUSE_ON_OPTIMISTIC_STATE"),
    ("table.pml", TABLE, "UNKNOWN_COUNTS_AS_WRITTEN"),
    ("table.pml", TABLE, "RELOAD_WITH_APPENDS_IN_FLIGHT"),
    ("table.pml", TABLE, "LATER_APPENDS_STAY"),
    ("table.pml", TABLE, "HINT_INSTEAD_OF_LOG"),
    ("table.pml", ARCHIVED, "CURSOR_BEFORE_ROWS"),
    ("table.pml", ARCHIVED, "LIST_BEFORE_BUNDLE"),
    ("table.pml", ARCHIVED, "ARCHIVE_AN_OPEN_TABLE"),
    ("keys.pml", (), "NO_SECOND_NAME"),
    ("keys.pml", (), "REPLACE_BEFORE_LOG"),
    ("keys.pml", (), "DELETE_WITHOUT_NOTICE"),
    ("keys.pml", (), "DELETE_WITHOUT_WAITING"),
    ("keys.pml", (), "DELETE_WITHOUT_SECOND_SEARCH"),
]


@pytest.mark.parametrize(
    ("model", "defines", "least"),
    [("table.pml", TABLE, 100_000), ("table.pml", ARCHIVED, 100_000), ("keys.pml", (), 10_000)],
)
def test_every_reachable_state_is_right(
    tmp_path: Path, model: str, defines: tuple[str, ...], least: int
) -> None:
    found = check(model, folder=tmp_path, defines=defines)
    assert found.fault is None
    assert found.states > least


@pytest.mark.parametrize(("model", "defines", "fault"), FAULTS)
def test_a_planted_fault_is_found(
    tmp_path: Path, model: str, defines: tuple[str, ...], fault: str
) -> None:
    found = check(model, folder=tmp_path, defines=(*defines, fault), quick=True)
    assert found.fault is not None


def test_every_fault_of_the_models_is_planted() -> None:
    named = {
        line.split()[1]
        for model in ("table.pml", "keys.pml")
        for line in (HERE / model).read_text().splitlines()
        if line.startswith("#if") and line.split()[1] not in {"COMMANDS", "CRASHES", "KEEPERS"}
    }
    assert {fault for _, _, fault in FAULTS} == named
