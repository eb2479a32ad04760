"""Commands that check and maintain a practice table, which is neither fair nor forged."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dealer.game.commands import CloseRound, StartShuffle
from dealer.service.build import open_service
from dealer.service.reading.past_states import no_pause

from .conftest import HOST, Ask, Played

pytestmark = pytest.mark.slow

VERSION = 112  # in the second half of round 1: hands, and piles face up
SAYS = "practice: not a fair deal. By its rule the first shuffle laid out the cards of round 1 of"


@pytest.fixture
def practice(played: Played) -> str:
    """A practice table of the closed table, with a shuffle of its own after the layout."""

    async def open_() -> str:
        async with open_service(played.url) as service:
            source = await service.lifecycle.load(played.closed)
            past = service.past_states
            rules, round_ = await past.practice(source, 1, VERSION, pause=no_pause)
            table, _ = await service.open_table(rules, laid_out=round_)
            for command in (StartShuffle(HOST), CloseRound(HOST)):
                await service.execute(table, command)
            return table.table_id

    return asyncio.run(open_())


def test_audit_says_of_what_it_is_a_practice(ask: Ask, played: Played, practice: str) -> None:
    answer = ask("audit", practice, "--database", played.url)
    assert answer.code == 3
    assert f"{SAYS} table {played.closed} as they lay at version {VERSION}.\n" in answer.out
    assert "passed: Each swap follows from the random bytes (tape): every swap after" in answer.out
    found = json.loads(ask("audit", practice, "--json", "--database", played.url).out)
    assert found["practice"]["table"] == played.closed
    assert found["practice"]["source"] == "not given"
    swaps = [step for step in found["story"] if step["type"] == "CardsSwapped"]
    assert swaps[0]["words"] == []
    assert swaps[0]["sentence"].endswith("; tape —")
    assert swaps[-1]["words"] != []
    fair = ask("audit", played.closed, "--json", "--database", played.url)
    assert fair.code == 0
    assert json.loads(fair.out)["practice"] is None


def test_a_forged_practice_table_is_forged(ask: Ask, played: Played, practice: str) -> None:
    file = played.folder / "practice.jsonl"
    ask("export", practice, "-o", file, "--database", played.url)
    assert ask("verify", file).code == 3
    file.write_bytes(file.read_bytes().replace(b'"seat":1', b'"seat":9', 1))
    assert ask("verify", file).code == 1


def test_verify_compares_it_with_its_source(
    ask: Ask, played: Played, practice: str, tmp_path: Path
) -> None:
    mine, source, other = (tmp_path / name for name in ("mine", "source", "other"))
    for table, file in ((practice, mine), (played.closed, source), (played.open, other)):
        ask("export", table, "-o", file, "--database", played.url)
    proved = ask("verify", mine, "--source", source)
    assert proved.code == 3
    assert "They lay so: the source proves it." in proved.out
    found = json.loads(ask("verify", mine, "--source", source, "--json").out)
    assert found["ok"] is True
    assert found["practice"]["source"] == "proved"
    wrong = ask("verify", mine, "--source", other)
    assert wrong.code == 1
    assert "The source is of another table than the rule names." in wrong.out
    missing = ask("verify", mine, "--source", tmp_path / "nothing")
    assert missing.code == 2
    assert "nothing cannot be read" in missing.err


def test_history_state_and_rebuild_work_on_it(ask: Ask, played: Played, practice: str) -> None:
    answer = ask("history", practice, "--database", played.url)
    assert answer.code == 0
    assert "??" not in answer.out
    before = json.loads(
        ask(
            "state", played.closed, "--at", VERSION, "--all", "--json", "--database", played.url
        ).out
    )
    stacks = {name: cards for name, cards in before["stacks"].items() if cards}
    hands = sum(name.startswith("hand:") for name in stacks)
    shown = len(before["round"]["shown"])
    end = 1 + 2 * hands + 3 + 51 + 1 + sum(map(len, stacks.values())) - len(stacks["deck"]) + shown
    after = json.loads(
        ask("state", practice, "--at", end, "--all", "--json", "--database", played.url).out
    )
    assert {name: cards for name, cards in after["stacks"].items() if cards} == stacks
    rebuilt = ask("rebuild", "--database", played.url)
    assert rebuilt.code == 0
    assert "0 rows differed" in rebuilt.out


def test_the_lab_counts_only_its_own_shuffles(ask: Ask, played: Played, practice: str) -> None:
    answer = ask("lab", "table", practice, "--database", played.url)
    assert answer.code == 0
    (line, *_) = answer.lines
    assert line.endswith(": 1 shuffle.")
