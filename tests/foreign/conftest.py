"""Bundles of real tables for other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.played_tables import Played, real_tables


@pytest.fixture(scope="session")
def tables() -> list[Played]:
    return real_tables(largest=False)


@pytest.fixture
def bundle(tables: list[Played], tmp_path: Path) -> Path:
    """The file of a bundle: two players with nonces, 52 cards, a cosignature of one player."""
    file = tmp_path / "game.jsonl"
    lines = tables[0].bundle.lines
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")  # type: ignore[str-bytes-safe]
    return file
