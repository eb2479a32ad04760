"""`dealer lab`: experiments, the check of all methods, and real tables."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dealer.game.commands import Actor, CloseRound, CloseTable, OpenRound, StartShuffle
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

HOST = Actor(host=True)
ROUNDS = 12
CARDS = ("2c", "3c", "4c", "5c")


def test_run_prints_a_report(ask: Ask) -> None:
    answer = ask("lab", "run", "--deck", 4, "--shuffles", 60_000, "--source", "pcg64",
                 "--seed", 5)  # fmt: skip
    assert answer.code == 0
    assert "60,000 shuffles of 4 cards" in answer.lines[0]
    assert "24 of 24 orders occurred." in answer.lines
    assert any(line.startswith("Mean 2,500.00, standard deviation ") for line in answer.lines)
    assert sum("█" in line for line in answer.lines) == 24
    assert sum(line.startswith("orders, χ²") for line in answer.lines) == 1
    assert answer.lines[-1] == "No evidence of bias (at level 1e-06)."


def test_a_biased_shuffle_exits_with_code_one(ask: Ask) -> None:
    answer = ask("lab", "run", "--deck", 4, "--shuffles", 20_000, "--shuffle", "swap-any",
                 "--source", "mersenne", "--seed", 1, "--json")  # fmt: skip
    result = json.loads(answer.out)
    assert (answer.code, result["fair"], result["shuffle"], result["sample"]) == (
        1,
        False,
        "swap-any",
        4,
    )
    assert result["orders"]["mean"] == pytest.approx(20_000 / 24)
    assert result["orders"]["deviation"] ** 2 == pytest.approx(result["orders"]["variance"])
    assert len(result["findings"]) == 4


def test_only_the_sample_of_a_partial_shuffle_is_tested(ask: Ask) -> None:
    answer = ask("lab", "run", "--shuffle", "partial", "--steps", 5, "--shuffles", 5000,
                 "--source", "tape", "--seed", 2)  # fmt: skip
    assert answer.code == 0
    assert "Only the top 5 places are tested." in answer.lines


def test_fresh_numbers_every_method_and_the_right_verdict(ask: Ask) -> None:
    answer = ask("lab", "check", "--shuffles", 5000)
    assert answer.code == 0
    fair = [line for line in answer.lines if "No evidence of bias" in line]
    wrong = [line for line in answer.lines if "Not fair" in line]
    assert [line.split()[0] for line in fair] == [
        "backward", "forward", "partial", "random-key", "visited-set",
    ]  # fmt: skip
    assert [line.split()[0] for line in wrong] == [
        "swap-any", "swap-any-but-last", "random-comparator", "transpositions", "sattolo",
    ]  # fmt: skip
    assert all(": as expected" in line for line in answer.lines)


def test_a_wrong_verdict_fails_the_check(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    from dealer.lab import shuffles

    right = shuffles.exchanges

    def wrong(name: str, n: int, steps: int) -> Any:
        taken = {"forward": "sattolo", "swap-any": "backward"}.get(name, name)
        return right(taken, n, steps if taken == name else n - 1)

    monkeypatch.setattr(shuffles, "exchanges", wrong)
    seeded = ("lab", "check", "--shuffles", 2000, "--source", "pcg64")
    answer = ask(*seeded)
    assert answer.code == 1
    detected = [line.split()[0] for line in answer.lines if "NOT as expected" in line]
    assert detected == ["forward", "swap-any"]
    result = [json.loads(line) for line in ask(*seeded, "--json").lines]
    assert [one["expected_fair"] for one in result] == [True] * 5 + [False] * 5
    assert [one["shuffle"] for one in result if one["fair"] != one["expected_fair"]] == detected


@pytest.mark.parametrize(("shuffles", "words"), [(10, "Too few shuffles"), (600, "No evidence")])
def test_a_verdict_needs_enough_shuffles(ask: Ask, shuffles: int, words: str) -> None:
    answer = ask("lab", "run", "--shuffles", shuffles, "--source", "pcg64")
    assert answer.code == 0
    assert answer.lines[-1].startswith(words)
    assert (answer.lines[-1] == "Too few shuffles for a verdict: at least 52 are needed.") == (
        shuffles < 52
    )


def test_the_line_of_a_fair_bar_is_labelled(ask: Ask) -> None:
    answer = ask("lab", "run", "--deck", 3, "--shuffles", 600, "--source", "pcg64")
    assert any(
        line.endswith("(fair: 100 each; │ is where a fair bar would end):") for line in answer.lines
    )


def test_costs(ask: Ask) -> None:
    assert "×4.01" in ask("lab", "costs").lines[2]
    result = [json.loads(line) for line in ask("lab", "costs", "--json").lines]
    assert [cost["numbers"] for cost in result[0]["costs"]] == [15, 63, 255, 1023]


def test_shuffles_of_a_table_from_the_log_and_from_its_bundle(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    from_log = ask("lab", "table", played.closed[:10], "--database", played.url)
    assert from_log.code == 0
    assert from_log.lines[0] == "backward, 51 of 51 steps, 52 cards: 2 shuffles."
    file = tmp_path / "game.jsonl"
    ask("export", played.closed, "-o", file, "--database", played.url)
    assert ask("lab", "table", file).out == from_log.out
    assert ask("lab", "table", "--all", "--database", played.url).out == from_log.out
    twice = ask("lab", "table", file, played.closed, "--all", "--database", played.url, "--json")
    assert json.loads(twice.lines[0])["shuffles"] == 2
    assert json.loads(twice.lines[0])["tables"] == 1


def test_an_open_round_gives_no_shuffle(ask: Ask, played: Played) -> None:
    answer = ask("lab", "table", played.open, "--database", played.url)
    assert (answer.code, answer.out) == (0, "")
    assert "no shuffle in a closed round" in answer.err


def test_a_bundle_that_does_not_verify_is_not_counted(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    file = tmp_path / "game.jsonl"
    ask("export", played.closed, "-o", file, "--database", played.url)
    file.write_text(file.read_text().replace('"step":7', '"step":8', 1))
    answer = ask("lab", "table", file)
    assert answer.code == 1
    assert answer.out == ""
    assert "does not verify, so it is not counted: heads" in answer.err


def test_statistics_over_a_table_of_many_rounds(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    table = asyncio.run(_many_rounds(url))
    result = json.loads(ask("lab", "table", table, "--database", url, "--json").out)
    assert (result["n"], result["shuffles"], result["fair"]) == (len(CARDS), ROUNDS, True)
    p_values = {one["name"]: one["p"] for one in result["findings"]}
    assert p_values["orders, χ²"] is None
    assert 0 < p_values["place × card, χ²"] <= 1
    monkeypatch.setattr("dealer.lab.experiment.sample", lambda decks, k: np.sort(decks, axis=1))
    answer = ask("lab", "table", table, "--database", url)
    assert answer.code == 1
    assert "Not fair" in answer.out


async def _many_rounds(url: str) -> str:
    async with open_service(url, ServiceOptions(house="house.example")) as service:
        live_table, _ = await service.open_table({})
        for _ in range(ROUNDS):
            for command in (
                OpenRound(HOST, CARDS, "house", 1000, 1000),
                StartShuffle(HOST),
                CloseRound(HOST),
            ):
                await service.execute(live_table, command)
        await service.execute(live_table, CloseTable(HOST))
        return live_table.table_id


@pytest.mark.parametrize("package", ["numpy", "scipy"])
@pytest.mark.parametrize("command", ["run", "check", "costs", "table"])
def test_missing_packages_are_reported_with_the_command_to_install_them(
    ask: Ask, command: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    answer = ask("lab", command)
    assert answer.code == 1
    assert answer.err == (
        "dealer: The commands `dealer lab` need numpy and scipy. Install them with "
        "pip install '.[lab]' in the source folder.\n"
    )
    assert ask("lab", command, "--help").code == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ("run", "--shuffle", "riffle"),
        ("run", "--seed", "1"),
        ("run", "--source", "clock"),
        ("run", "--deck", "2000"),
        ("run", "--shuffle", "backward", "--steps", "3"),
        ("table",),
    ],
)
def test_wrong_arguments_are_usage_errors(ask: Ask, wrong: tuple[str, ...]) -> None:
    answer = ask("lab", *wrong)
    assert (answer.code, answer.out) == (2, "")


def test_a_file_that_is_not_there_is_named(ask: Ask) -> None:
    answer = ask("lab", "table", "nofile.jsonl")
    assert answer.code == 2
    assert "is no file, and no table's id" in answer.err
