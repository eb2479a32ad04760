"""Every tutorial runs from its first command to its last, over real sockets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.tutorial import Reader
from tests.harness.installed import openssl, program
from tests.harness.server_process import ROOT

pytestmark = pytest.mark.slow

TUTORIALS = ROOT / "dealer" / "docs" / "tutorials"
PROGRAMS = {"audit": ("sqlite3",), "backend": ("curl",), "what-if": ("curl",)}


def test_what_the_family_presses_is_on_the_pages() -> None:
    texts = (ROOT / "dealer" / "web" / "texts" / "en.json").read_text(encoding="utf-8")
    game = json.loads((ROOT / "dealer" / "web" / "games" / "hearts.json").read_text("utf-8"))
    title = game["title"]["en"]
    said = (TUTORIALS / "family-table.md").read_text(encoding="utf-8")
    pressed = set(re.findall(r"\*\*(.+?)\*\*", said)) - {title}
    assert len(pressed) > 5
    for words in pressed:
        assert f'"{words.replace(title, "{game}")}"' in texts, words


@pytest.mark.parametrize("name", sorted(path.stem for path in TUTORIALS.glob("*.md")))
async def test_a_tutorial(name: str, tmp_path: Path) -> None:
    for one in PROGRAMS.get(name, ()):
        program(one)
    if name == "audit":
        openssl()
    (tmp_path / "dealer").symlink_to(ROOT / "dealer")  # as in a clone
    async with Reader(tmp_path) as reader:
        await reader.follow((TUTORIALS / f"{name}.md").read_text(encoding="utf-8"))


async def test_a_bot_that_was_killed_before_the_deal_deals(tmp_path: Path) -> None:
    """The first one, which waited for the other; it goes on at the table whose id it printed."""
    text = (TUTORIALS / "bot.md").read_text(encoding="utf-8")
    first, then, second = text.partition("and the other one at the same table:")
    assert then
    async with Reader(tmp_path) as reader:
        await reader.follow(first)
        await reader.type("# Terminal 3\nuntil [ -s ada.log ]; do :; done\n")
        await reader.close_terminal(2)
        again = 'python bot.py Ada "$(head -n1 ada.log)"'
        assert again.replace('"$(head -n1 ada.log)"', "ID") in second
        await reader.type(f"# Terminal 2\n{again} &\n")
        await reader.follow(second)
        over = f"# Terminal 2\n{again} | grep -x 'The game is over.'\n"
        await reader.type(over)
        await reader.type(over.replace("Ada", "Bob", 1).replace("Terminal 2", "Terminal 3"))
