"""Datasette opens the database file of a demonstration and shows the game."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.docs.tutorial import Reader
from tests.harness.installed import missing


async def test_the_views_of_a_demonstration(tmp_path: Path) -> None:
    if find_spec("datasette") is None:
        missing("datasette is not installed (pip install datasette)")
    async with Reader(tmp_path) as reader:
        await reader.type("dealer demo --database sqlite:///dealer.db\n")
        start = f"# Terminal 2\ndatasette --port {reader.ports['8081']} dealer.db\n"
        await reader.type(start, "… Uvicorn running on …")

        def page(path: str, **query: object) -> str:
            address = f"http://127.0.0.1:{reader.ports['8081']}/{path}?{urlencode(query)}"
            with urlopen(address, timeout=60) as answer:
                text: str = answer.read().decode()
                return text

        def rows(view: str, **query: object) -> list[dict[str, object]]:
            found: list[dict[str, object]] = json.loads(
                page(f"dealer/{view}.json", _shape="array", _size=1000, **query)
            )
            return found

        shown = json.loads(page("dealer.json"))["views"]
        assert {"log", "shuffle_swaps", "hand_changes"} <= {one["name"] for one in shown}
        swaps = rows("shuffle_swaps", round=1, shuffle=0)
        assert [one["step"] for one in swaps] == list(range(51))
        assert all(one["card"] and one["other_card"] for one in swaps)
        drawn = rows("hand_changes", **{"from": "deck", "change": "+"})
        assert {one["player"] for one in drawn} == {"Ada", "Bob", "Cleo", "Dan"}
        assert [one["who"] for one in rows("log", type="CardDrawn")] == [
            one["player"] for one in drawn
        ]
        html = page("dealer/hand_changes", player="Cleo")
        assert "hand:3" in html
        assert "Ada" not in html
