"""Each line of the threat model has tests, named in threats.toml, that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "dealer" / "THREATS.md").read_text(encoding="utf-8")
TESTS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (ROOT / "tests" / "threats.toml").read_text(encoding="utf-8")
)
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| (.+?) \| (.+) \|$", re.MULTILINE)
"""An attack: its number, who, what is wanted or happens, and the defence."""


def test_every_line_has_tests() -> None:
    rows = ROW.findall(DOCUMENT)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    attacks = [wants for _, wants, _ in rows]
    assert len(attacks) > 40
    assert list(TESTS) == attacks
    assert all(names for files in TESTS.values() for names in (files, *files.values()))


@pytest.mark.parametrize("file", sorted({file for files in TESTS.values() for file in files}))
def test_every_test_that_is_named_is_there(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    named = {name for files in TESTS.values() for name in files.get(file, ())}
    assert named <= set(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))
