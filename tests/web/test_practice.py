"""Practice tables, true and forged by their house: both verifiers say the same of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dealer.game.commands import (
    Actor,
    CloseRound,
    Command,
    Deal,
    DealtPile,
    Draw,
    LeaveSeat,
    Move,
    OpenRound,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.game.state import Round
from dealer.proof.canonical import decode, encode
from dealer.proof.verify import Report
from dealer.service import LiveTable, Service
from dealer.service.reading.past_states import no_pause
from tests.harness.empty_log import empty_log
from tests.proof.log_builder import CARDS, LogBuilder, leaves_of
from tests.service.bare_service import bare_service
from tests.web.js_verifier import FILE, Bundle, ask, compare, node, question

pytestmark = pytest.mark.slow

HOST = Actor(host=True)
DECK = tuple(rank + suit for suit in "sh" for rank in "A23456789TJQK")


class Tables:
    """Tables of one house, and their bundles."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def bundle(self, table: LiveTable) -> list[str]:
        return [line async for line in self.service.bundle(table)]

    async def do(self, table: LiveTable, *commands: Command) -> None:
        for command in commands:
            await self.service.execute(table, command)

    async def source(self, *, closed: bool = True) -> LiveTable:
        """Hands, piles face up and down, and a second shuffle; then a second round."""
        table, _ = await self.service.open_table({"game": "hearts", "name": "Ours"})
        await self.do(
            table,
            TakeSeat("Ada"),
            TakeSeat("Bob", 3),
            OpenRound(HOST, DECK, "house", 100, 100),
            StartShuffle(HOST),
            Deal(HOST, 4, None, (DealtPile("pile:open", 2, "up"), DealtPile("pile:shut", 2))),
            Move(Actor(seat=1), "play", "hand:1", "pile:open", None, 1, face="up"),
            Show(Actor(seat=3), "hand:3"),
            StartShuffle(HOST, steps=5),
            StartShuffle(HOST, stack="pile:open"),
            Show(HOST, "pile:open"),
            LeaveSeat(Actor(seat=3)),
            CloseRound(HOST),
            OpenRound(HOST, DECK, "house", 100, 100),
            StartShuffle(HOST),
            *([CloseRound(HOST)] if closed else ()),
        )
        return table

    async def laid_out(self, table: LiveTable, version: int | None) -> tuple[dict[str, Any], Round]:
        past = self.service.past_states
        moment = await past.moment(table, 1, version)
        return await past.practice(table, 1, moment, pause=no_pause)

    async def practice(
        self, rules: Mapping[str, Any], round_: Round, *, closed: bool = True
    ) -> list[str]:
        """A practice table, on which a card is played and the deck shuffled again."""
        table, _ = await self.service.open_table(rules, laid_out=round_)
        await self.do(
            table,
            TakeSeat("Cleo"),
            Draw(Actor(seat=1)),
            Move(Actor(seat=1), "play", "hand:1", "pile:open", None, 1, face="up"),
            StartShuffle(HOST),
            *([CloseRound(HOST)] if closed else ()),
        )
        return await self.bundle(table)


def exchanged(round_: Round, one: str, other: str) -> Round:
    """With the top cards of two stacks exchanged."""
    round_ = deepcopy(round_)
    a, b = round_.stacks[one], round_.stacks[other]
    a[-1], b[-1] = b[-1], a[-1]
    return round_


def turned(round_: Round, stack: str, *, up: bool) -> Round:
    """With the top card of a stack face up, or down."""
    round_ = deepcopy(round_)
    slot = round_.stacks[stack][-1]
    (round_.shown.add if up else round_.shown.remove)(slot)
    return round_


def moved(round_: Round, one: str, other: str) -> Round:
    """With the top card of a stack on another one."""
    round_ = deepcopy(round_)
    round_.stacks[other].append(round_.stacks[one].pop())
    return round_


def swapped(round_: Round, one: str, other: str) -> Round:
    """With the names of two stacks exchanged."""
    round_ = deepcopy(round_)
    stacks = round_.stacks
    stacks[one], stacks[other] = stacks.get(other, []), stacks.get(one, [])
    return round_


def reversed_deck(round_: Round) -> Round:
    round_ = deepcopy(round_)
    round_.stacks["deck"].reverse()
    return round_


def other_deck(round_: Round) -> Round:
    """With a card that the source's deck does not have."""
    round_ = deepcopy(round_)
    face = round_.face(round_.stacks["hand:1"][-1])
    round_.opened = tuple("XX" if card == face else card for card in round_.opened)
    round_.faces = ["XX" if card == face else card for card in round_.faces]
    return round_


LAID_OUT = {
    "a card of another stack": lambda round_: exchanged(round_, "hand:1", "deck"),
    "a card in another hand": lambda round_: moved(round_, "hand:1", "hand:3"),
    "a card of another hand": lambda round_: exchanged(round_, "hand:1", "hand:3"),
    "a card of no deck": other_deck,
    "an order changed": reversed_deck,
    "a card face down": lambda round_: turned(round_, "pile:open", up=False),
    "a card face up": lambda round_: turned(round_, "pile:shut", up=True),
    "seats swapped": lambda round_: swapped(round_, "hand:1", "hand:3"),
    "another seat": lambda round_: swapped(round_, "hand:1", "hand:2"),
    "another pile": lambda round_: swapped(round_, "pile:shut", "pile:shut-2"),
}
"""Layouts that a house forged, under the rule of the true one."""


def changed(rules: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    return {**rules, "practice": {**rules["practice"], **members}}


GOOD = {"table": "ab" * 16, "round": 1, "version": 9, "root": "cd" * 32}
MALFORMED: dict[str, Any] = {
    "true": True,
    "a text": "abcd",
    "a list": [1, 2, 3, 4],
    "nothing": {},
    "upper case": GOOD | {"root": "CD" * 32},
    "a short table": GOOD | {"table": "ab"},
    "a line end": GOOD | {"table": "ab" * 15 + "a\u0085"},
    "a list as table": GOOD | {"table": ["ab" * 16]},
    "round 0": GOOD | {"round": 0},
    "version true": GOOD | {"version": True},
    "version as text": GOOD | {"version": "9"},
    "a member more": GOOD | {"name": "x"},
    "a member less": {name: value for name, value in GOOD.items() if name != "version"},
}

NOT_SO = ("moves", "The cards were not laid out as they lie in the source.")
NO_RULE = ("tape", "This table names no source")
FAULTS = {
    "a missing rule": NO_RULE,
    "a missing rule, no source": ("tape", "The commitment does not match"),
    "another table named": ("tape", "The source is of another table"),
    "another source": ("tape", "The source is of another table"),
    "another round": ("tape", "is not of round 2"),
    "no such round": ("tape", "The source has no closed round 3"),
    "an open round": ("tape", "The source has no closed round 2"),
    "a version before": ("tape", "Version 3 of the source is not of round 1"),
    "a version after": ("tape", "of the source is not of round 1"),
    "another version": NOT_SO,
    "another root": ("tape", "The house signed no such root"),
    "a root before the end": ("tape", "The house signed no such root"),
    "a fair table with a source": NO_RULE,
    "a fair table with the rule": NOT_SO,
    "a short log": NOT_SO,
    "no round": NOT_SO,
    "a faulty source": ("tape", "The source has a fault itself, in line 9: "),
    "a page as source": ("tape", "in line 0: This is an HTML page, not a bundle."),
    "a source of test decks": (
        "tape",
        "in line 1: This table was opened at a server with insecure",
    ),
    "a swap out of range": ("tape", "The commitment is to no place"),
    "a swap of the second shuffle": ("tape", "The commitment does not match"),
    **dict.fromkeys(LAID_OUT, NOT_SO),
    **dict.fromkeys((f"malformed: {name}" for name in MALFORMED), ("tape", "The rule `practice`")),
}
"""The first fault, and how its sentence begins; all other bundles have none."""

OTHER_WORDS = ("a missing rule, no source", "a faulty source", "a swap of the second shuffle")
"""Faults that other tables have, too: of each the verifiers have their own sentence."""

STATES = {"no source": "not given", "an open table": "open"}
"""What reports without a fault say of the source; all others say that it proves the layout."""


async def made_by_a_service(folder: Path) -> dict[str, tuple[list[str], list[str] | None]]:
    made: dict[str, tuple[list[str], list[str] | None]] = {}
    async with bare_service(empty_log(folder / "dealer.db")) as service:
        tables = Tables(service)
        source, other, running = (
            await tables.source(),
            await tables.source(),
            await tables.source(closed=False),
        )
        lines, others = await tables.bundle(source), await tables.bundle(other)
        end = [leaf["type"] for leaf in leaves_of(lines)].index("RoundClosed")
        for version in (*range(4, 8), *range(30, end + 1)):
            layout = await tables.laid_out(source, version)
            made[f"version {version}"] = (await tables.practice(*layout), lines)
        beginning = await tables.laid_out(source, None)
        made["the beginning"] = (await tables.practice(*beginning), lines)
        rules, round_ = await tables.laid_out(source, end)
        true = await tables.practice(rules, round_)
        made["no source"] = (true, None)
        made["an open table"] = (await tables.practice(rules, round_, closed=False), lines)
        practice, _ = await service.open_table(rules, laid_out=round_)
        await tables.do(practice, CloseRound(HOST))
        again = await tables.laid_out(practice, None)
        made["a practice of a practice"] = (
            await tables.practice(*again),
            await tables.bundle(practice),
        )
        for name, forge in LAID_OUT.items():
            made[name] = (await tables.practice(rules, forge(round_)), lines)
        own = {name: value for name, value in rules.items() if name != "practice"}
        made["a missing rule"] = (await tables.practice(own, round_), lines)
        made["a missing rule, no source"] = (made["a missing rule"][0], None)
        first = signed_root(lines, "DeckSealed")
        renamed: dict[str, dict[str, Any]] = {
            "another table named": {"table": other.table_id},
            "another round": {"round": 2},
            "no such round": {"round": 3},
            "a version before": {"version": 3},
            "a version after": {"version": end + 1},
            "another version": {"version": end - 12},
            "another root": {"root": "0" * 64},
            "a root before the end": {"root": first},
        }
        for name, members in renamed.items():
            made[name] = (await tables.practice(changed(rules, **members), round_), lines)
        made["another source"] = (true, others)
        in_play = {"table": running.table_id, "round": 2}
        made["an open round"] = (
            await tables.practice(changed(rules, **in_play), round_),
            await tables.bundle(running),
        )
        made["a fair table with a source"] = (lines, others)
        bad = [*lines[:9], encode({**decode(lines[9]), "at": 1}).decode(), *lines[10:]]
        made["a faulty source"] = (true, bad)
        made["a page as source"] = (true, ["<!doctype html>", "<p>"])
    return made


def signed_root(lines: list[str], type_: str) -> str:
    """The root of the first checkpoint at an event of this type, in hex."""
    version = [leaf["type"] for leaf in leaves_of(lines)].index(type_) + 1
    notes = [json.loads(line)["checkpoint"] for line in lines if line.startswith('{"checkpoint"')]
    (root,) = (note.split("\n")[2] for note in notes if note.split("\n")[1] == str(version))
    return b64decode(root).hex()


def made_by_hand() -> dict[str, tuple[list[str], list[str] | None]]:
    """Logs that no service writes."""
    source = LogBuilder(table=b"s" * 16).open_table().sit(1).sit(2).open_round().shuffle()
    source.draw(1).draw(2).close_round()
    lines = source.lines()
    rule = {
        "table": "73" * 16,
        "round": 1,
        "version": len(source.leaves) - 1,
        "root": source.tree.root().hex(),
    }
    fair = LogBuilder().open_table(practice=rule).sit(1).sit(2).open_round().shuffle()
    short = LogBuilder().open_table(practice=rule).sit(1).open_round().shuffle().close_round()
    far = LogBuilder().open_table(practice=rule).sit(1).open_round().start().close()
    n = len(CARDS)
    far.append("CardsSwapped", {"j": n}, round=1, k=0, step=0, i=n - 1)
    later = LogBuilder().open_table(practice=rule).sit(1).open_round().shuffle().start().close()
    (step, i, j), *_ = later.plan(())
    later.append("CardsSwapped", {"j": (j + 1) % n}, round=1, k=1, step=step, i=i)
    tests = LogBuilder(table=b"s" * 16).open_table(insecure_test_deck={"seed": "1"})
    made = {
        "a fair table with the rule": (
            fair.draw(1).draw(2).note().note().close_round().lines(),
            lines,
        ),
        "a short log": (short.lines(), lines),
        "no round": (LogBuilder().open_table(practice=rule).sit(1).lines(), lines),
        "a swap out of range": (sealed(far), None),
        "a swap of the second shuffle": (sealed(later), None),
        "a source of test decks": (fair.lines(), tests.open_round().close_round().lines()),
    }
    malformed = {
        f"malformed: {name}": LogBuilder().open_table(practice=rule).lines()
        for name, rule in MALFORMED.items()
    }
    return {**made, **{name: (lines, None) for name, lines in malformed.items()}}


def sealed(log: LogBuilder) -> list[str]:
    """With the rest of a shuffle of which one swap was made, and the round's end."""
    for step in range(1, log.steps):
        log.swap(step, log.n - 1 - step, 0)
    return log.seal().close_round().lines()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("practice")
    tables = asyncio.run(made_by_a_service(folder)) | made_by_hand()
    return {
        name: Bundle(name, lines, source=compared) for name, (lines, compared) in tables.items()
    }


def test_both_verifiers_agree_on_true_and_forged_practice_tables(made: dict[str, Bundle]) -> None:
    found, reports = compare(list(made.values()))
    assert found == []
    assert set(FAULTS) | set(STATES) <= set(made)
    by_name: dict[str, Report] = dict(zip(made, reports, strict=True))
    for name, report in by_name.items():
        check, sentence = FAULTS.get(name, (None, ""))
        assert (report.fault and report.fault.check) == check, (name, report.fault)
        assert sentence in (str(report.fault.sentence) if report.fault else ""), name
        if check is None:
            assert report.practice is not None
            assert report.practice.source == STATES.get(name, "proved"), name
    refused = by_name["a missing rule, no source"].fault
    assert refused is not None
    assert refused.line > 3, "at a swap of the first shuffle"


def test_both_verifiers_use_the_same_words(made: dict[str, Bundle]) -> None:
    bundles = [bundle for name, bundle in made.items() if name not in OTHER_WORDS]
    _, reports = compare(bundles)
    for bundle, report, answer in zip(bundles, reports, ask(map(question, bundles)), strict=True):
        assert answer["lines"] == report.lines(), bundle.name


def test_a_report_says_that_it_is_no_fair_deal(made: dict[str, Bundle]) -> None:
    wanted = {
        "no source": "Whether they lay so is not checked: give that table's bundle as the source.",
        "an open table": "Whether they lay so is not checked: round 1 is still open.",
        "version 40": "They lay so: the source proves it.",
        "another root": "Rounds: ",  # after a fault nothing is said of the source
        "a page as source": "Rounds: ",
    }
    _, reports = compare([made[name] for name in wanted])
    for report, follows in zip(reports, wanted.values(), strict=True):
        assert report.practice is not None
        lines = report.lines()
        (place,) = (n for n, line in enumerate(lines) if line.startswith("practice: "))
        assert lines[place] == (
            "practice: not a fair deal. By its rule the first shuffle laid out the cards of round "
            f"1 of table {report.practice.table} as they lay at version {report.practice.version}."
        )
        assert lines[place + 1].startswith(follows)
        assert not any("every swap is the one" in line for line in [*lines, *report.verdicts()])


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, check=False, encoding="utf-8"
    )


def test_the_command_lines_exit_with_a_code_of_their_own(
    made: dict[str, Bundle], tmp_path: Path
) -> None:
    files = {name: tmp_path / name for name in ("mine", "source", "forged")}
    true, forged = made["version 40"], made["seats swapped"]
    for name, lines in {"mine": true.lines, "source": true.source, "forged": forged.lines}.items():
        files[name].write_text("".join(f"{line}\n" for line in map(str, lines or ())))
    mine, source = files["mine"], files["source"]
    for program in ([sys.executable, "-m", "dealer", "verify"], [node(), FILE]):
        for arguments, code, says in (
            ([mine], 3, "practice: not a fair deal."),
            ([mine, "--source", source], 3, "They lay so: the source proves it."),
            ([files["forged"]], 3, "Whether they lay so is not checked"),
            ([files["forged"], "--source", source], 1, NOT_SO[1]),
            ([source], 0, "Rounds: 2"),
            ([source, "--source", source], 1, NO_RULE[1]),
        ):
            done = run(*program, *arguments)
            assert done.returncode == code, done
            assert says in done.stdout
        found = json.loads(run(*program, mine, "--source", source, "--json").stdout)
        assert found["fault"] is None
        assert found["practice"]["source"] == "proved"
        assert json.loads(run(*program, source, "--json").stdout)["practice"] is None
        assert run(*program, mine, "--source", tmp_path / "nothing").returncode == 2


def test_what_was_undone_in_a_source_is_noted(made: dict[str, Bundle], tmp_path: Path) -> None:
    true = made["version 40"]
    mine, source = tmp_path / "mine", tmp_path / "source"
    mine.write_text("".join(f"{line}\n" for line in map(str, true.lines)))
    source.write_text("\r\n".join(map(str, true.source or ())) + "\r\n", newline="")
    for program in ([sys.executable, "-m", "dealer", "verify"], [node(), FILE]):
        done = run(*program, mine, "--source", source)
        assert done.returncode == 3
        assert done.stdout.splitlines()[-1].startswith(f"note: {source}: line ends were changed")
