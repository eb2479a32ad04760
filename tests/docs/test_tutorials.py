"""Every tutorial runs from its first command to its last, over real sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.tutorial import Reader
from tests.harness.installed import openssl, program
from tests.harness.server_process import ROOT

pytestmark = pytest.mark.slow

TUTORIALS = ROOT / "dealer" / "docs" / "tutorials"
PROGRAMS = {"audit": ("sqlite3",), "backend": ("curl",)}


@pytest.mark.parametrize("name", sorted(path.stem for path in TUTORIALS.glob("*.md")))
async def test_a_tutorial(name: str, tmp_path: Path) -> None:
    for one in PROGRAMS.get(name, ()):
        program(one)
    if name == "audit":
        openssl()
    async with Reader(tmp_path) as reader:
        await reader.follow((TUTORIALS / f"{name}.md").read_text(encoding="utf-8"))
