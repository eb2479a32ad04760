"""The threat model names tests and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "dealer" / "THREATS.md").read_text(encoding="utf-8")
# Its lines are compared with what the program does, by tests/chaos/test_any_column.py.
CHANGES = re.search(r"^## Who notices .*?(?=^## )", DOCUMENT, re.MULTILINE | re.DOTALL)
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DOCUMENT)
ROW = re.compile(r"^\| (?!wants|what \||---)(.+) \|$", re.MULTILINE)


def test_there_are_rows() -> None:
    assert len(TESTS) > 40
    assert len(ROW.findall(DOCUMENT)) > 30


@pytest.mark.parametrize("file", sorted({file for file, _ in TESTS}))
def test_every_test_that_is_named_is_there(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    named = {name for one, name in TESTS if one == file}
    assert named <= set(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def test_every_row_names_a_test() -> None:
    assert CHANGES is not None
    for row in ROW.findall(DOCUMENT.replace(CHANGES[0], "")):
        assert "::test_" in row.split(" | ")[-1], row


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:dealer|tests)/[\w/]+(?:\.py)?)`", DOCUMENT)
    named += [f"dealer/{path}" for path in re.findall(r"\]\(([\w/]+\.md)\)", DOCUMENT)]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
