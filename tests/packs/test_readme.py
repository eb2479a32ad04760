"""The examples of README.md are accepted, and its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

from dealer.packs import game, pack
from dealer.packs.csv_pack import COLUMNS, parse_csv
from dealer.packs.members import parse_json

DOCUMENT = (Path(pack.__file__).parent / "README.md").read_text(encoding="utf-8")


def examples(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", DOCUMENT, re.DOTALL)


def test_the_examples_are_accepted() -> None:
    of_pack, of_game = map(parse_json, examples("json"))
    assert len(pack.read(of_pack, name="two-suits")["deck"]) == 6
    assert game.read(of_game, name="holdem", packs={})["cards"] == 52
    (table,) = examples("csv")
    assert len(pack.read(parse_csv(table, name="tiles"), name="tiles")["deck"]) == 6


def test_the_lists_are_complete() -> None:
    buttons = next(line for line in DOCUMENT.splitlines() if line.startswith("| `buttons`"))
    assert set(re.findall(r"`(\w+)`", buttons)) - {"buttons"} == set(game.BUTTONS)
    columns = DOCUMENT.split("Its columns are ")[1].split("; its title")[0]
    assert set(re.findall(r"`(\w+)`", columns)) == set(COLUMNS)
