"""Practice tables and fair ones that a house forges by hand: both verifiers give the same verdict.

`LogBuilder` signs whatever it is given. Each kind says what both must find: the first fault, or
else what the report says of the source.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import pytest

from dealer.proof.verify import Report
from tests.proof.forge import renumbered, signed_again
from tests.proof.log_builder import CARDS, HOUSE_SEED, LogBuilder, some_bytes
from tests.web.js_verifier import FILE, Bundle, ask, compare, node, question

pytestmark = pytest.mark.slow

Lines = Sequence[str]


def source(
    *,
    secret: object = "S",
    rounds: int = 1,
    house_seed: bytes = HOUSE_SEED,
    rules: Mapping[str, Any] = MappingProxyType({}),
) -> LogBuilder:
    """Seat 1 has two cards, seat 2 one, a pile one, face up: so each round ends; the last is open.

    Tables with another `secret` differ in their shuffles.
    """
    log = LogBuilder(table=b"s" * 16, house_seed=house_seed).open_table(**rules)
    log.sit(1, "Ada").sit(2, "Bob")
    for number in range(rounds):
        log.open_round(secret=some_bytes(secret, number)).shuffle()
        log.draw(1).draw(2).draw(1).move(log.stacks["deck"][-1], "deck", "pile:open")
        log.show(log.stacks["pile:open"][0])
        if number < rounds - 1:
            log.close_round()
    return log


class Source:
    """A closed round, as a practice table's rule names it, and where its cards lie at the end."""

    def __init__(self, log: LogBuilder | None = None) -> None:
        log = source() if log is None else log
        self.version, self.round = len(log.leaves), log.round
        self.stacks = {name: [*map(log.face, cards)] for name, cards in log.stacks.items() if cards}
        self.shown = [log.face(slot) for slot in log.stacks.get("pile:open", ())]
        log.close_round()
        self.root, self.table, self.lines = log.tree.root().hex(), log.table.hex(), log.lines()
        self.closed = log.close_table().lines()

    def rule(self, **changed: Any) -> dict[str, Any]:
        rule = {"table": self.table, "round": self.round, "version": self.version}
        return {**rule, "root": self.root, **changed}


class Practice(LogBuilder):
    """A practice table that is laid out as the server does it, step by step."""

    def begin(self, of: Source, **rules: Any) -> Self:
        self.open_table(**{"practice": of.rule(), **rules}).sit(1, "Seat 1").sit(2, "Seat 2")
        return self

    def arrange(self, of: Source, *, algorithm: str = "backward") -> Self:
        """The running shuffle: swaps that put the cards into the order of the layout."""
        placed = [card for name in sorted(of.stacks) if name != "deck" for card in of.stacks[name]]
        wanted = of.stacks["deck"] + placed[::-1]
        places = range(self.n) if algorithm == "forward" else range(self.n - 1, -1, -1)
        for step, i in enumerate([*places][: self.steps]):
            cards = [self.face(card) for card in self.stacks["deck"]]
            self.swap(step, i, cards.index(wanted[i]))
        self.seal()
        return self

    def place(self, of: Source) -> Self:
        for name in sorted(of.stacks):
            for card in of.stacks[name] if name != "deck" else ():
                slot = self.stacks["deck"][-1]
                assert self.face(slot) == card
                if name.startswith("hand:"):
                    self.draw(int(name[5:]))
                else:
                    self.move(slot, "deck", name, len(self.stacks.get(name, ())))
        return self

    def turn(self, of: Source) -> Self:
        for slot, face in enumerate(self.faces):
            if face in of.shown:
                self.show(slot)
        return self

    def leave(self, *seats: int) -> Self:
        for seat in seats or (1, 2):
            self.append("SeatLeft", seat=seat)
        return self

    def lay_out(self, of: Source) -> Self:
        self.open_round().start().close()
        return self.arrange(of).place(of).turn(of).leave()

    def ended(self) -> Lines:
        self.close_round()
        return self.lines()


def true(of: Source, **rules: Any) -> Practice:
    return Practice().begin(of, **rules).lay_out(of)


def without(name: str, lines: Lines) -> Lines:
    """The bundle without the openings that name a person."""
    return [line for line in lines if name not in line]


Made = tuple[Lines, Lines | None]
Kind = Callable[[Source], Made]
OTHER_WORDS = ("", "commitment", "The source has a fault itself")
"""Of faults that other tables have, too, each verifier has its own sentence."""

KINDS: dict[str, tuple[str | None, str, Kind]] = {}
"""Name → the check that fails, words of its fault or the state of the source, and the bundles."""


def kind(check: str | None, says: str, name: str) -> Callable[[Kind], Kind]:
    def add(make: Kind) -> Kind:
        KINDS[name] = (check, says, make)
        return make

    return add


# True ones, of odd forms.


@kind(None, "proved", "as the server makes it")
def _(of: Source) -> Made:
    return true(of).ended(), of.lines


@kind(None, "proved", "moves, a shuffle by the tape and a round after the layout")
def _(of: Source) -> Made:
    log = true(of).sit(1, "Cleo").draw(1)
    log.move(log.stacks["hand:1"][0], "hand:1", "pile:open").shuffle(stack="deck").close_round()
    return log.open_round().shuffle().close_round().lines(), of.lines


@kind(None, "proved", "a forward shuffle")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().start(algorithm="forward").close()
    return log.arrange(of, algorithm="forward").place(of).turn(of).leave().ended(), of.lines


@kind(None, "proved", "another order of the fresh deck")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round(CARDS[::-1]).start().close()
    return log.arrange(of).place(of).turn(of).leave().ended(), of.lines


@kind(None, "proved", "the second round of a source")
def _(_of: Source) -> Made:
    of = Source(source(rounds=2))
    return true(of).ended(), of.lines


@kind(None, "proved", "a source without Ada")
def _(of: Source) -> Made:
    return true(of).ended(), without("Ada", of.closed)


@kind(None, "proved", "a practice table without Cleo")
def _(of: Source) -> Made:
    log = true(of).sit(1, "Cleo").close_round().close_table()
    return without("Cleo", log.lines()), of.lines


@kind(None, "proved", "a practice table of one that was not laid out as its rule says")
def _(of: Source) -> Made:
    """It has a rule, but its bundle proves where its own cards lay, and no more is said."""
    between = Practice(table=b"b" * 16).begin(of).lay_out(Source(source(secret="other")))
    last = Source(between)
    return true(last).ended(), last.lines


@kind(None, "not given", "a layout that its source would refuse")
def _(of: Source) -> Made:
    return Practice().begin(of).lay_out(Source(source(secret=1))).ended(), None


@kind(None, "open", "no end yet, and other cards")
def _(of: Source) -> Made:
    return Practice().begin(of).lay_out(Source(source(secret=1))).lines(), of.lines


# What is laid out.

NOT_SO = "The cards were not laid out as they lie in the source."


@kind("moves", NOT_SO, "the cards of another game of that table's rules")
def _(of: Source) -> Made:
    return Practice().begin(of).lay_out(Source(source(secret=1))).ended(), of.lines


@kind("moves", NOT_SO, "a card played before the seats are left")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().start().close()
    log.arrange(of).place(of).turn(of).move(log.stacks["hand:1"][0], "hand:1", "pile:open")
    return log.leave().ended(), of.lines


@kind("moves", NOT_SO, "a card drawn instead of a seat left")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().start().close()
    return log.arrange(of).place(of).turn(of).leave(2).draw(1).leave(1).ended(), of.lines


@kind("moves", NOT_SO, "notes that delay the layout")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().start().note().note().note().close()
    return log.arrange(of).place(of).turn(of).leave().ended(), of.lines


@kind("moves", NOT_SO, "a second layout by moves after another one")
def _(of: Source) -> Made:
    """The cards lie right in the end, but not when the layout ends."""
    log = Practice().begin(of)
    log.open_round().start().close()
    log.arrange(of).place(of).turn(of)
    slot = log.stacks["hand:1"][-1]
    log.move(slot, "hand:1", "hand:2").leave().move(slot, "hand:2", "hand:1", 1)
    return log.ended(), of.lines


@kind("moves", NOT_SO, "the round closed within the layout, and laid out in the next one")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().shuffle().close_round().open_round().shuffle().close_round()
    return log.lines(), of.lines


@kind("moves", NOT_SO, "a deck of other codes")
def _(of: Source) -> Made:
    renamed = Source()
    codes = dict(zip(CARDS, ("AS", "KH", "QD", "JC", "Y1", "Y2", "7S"), strict=True))
    renamed.stacks = {name: [codes[card] for card in cards] for name, cards in of.stacks.items()}
    renamed.shown = [codes[card] for card in of.shown]
    log = Practice().begin(of)
    log.open_round(tuple(codes.values())).start().close()
    return log.arrange(renamed).place(renamed).turn(renamed).leave().ended(), of.lines


@kind("moves", "", "a partial shuffle, and a card that it did not reach")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().start(steps=1).close()
    log.arrange(of)
    return log.draw(1).draw(1).draw(2).leave().ended(), of.lines


# Which shuffle may be laid out.


@kind("tape", "commitment", "the first shuffle of the second round laid out")
def _(of: Source) -> Made:
    log = true(of)
    log.close_round().open_round().start().close()
    return log.arrange(of).ended(), of.lines


@kind("tape", "commitment", "a shuffle laid out after one that was voided")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round(entropy="players").start().commit(1).close().void().start().close()
    return log.arrange(of).place(of).turn(of).leave().ended(), of.lines


@kind("tape", "commitment", "an empty pile shuffled first")
def _(of: Source) -> Made:
    log = Practice().begin(of)
    log.open_round().shuffle(stack="pile:x").start().close()
    return log.arrange(of).place(of).turn(of).leave().ended(), of.lines


@kind("tape", "commitment", "a layout without the rule")
def _(of: Source) -> Made:
    log = Practice().open_table(practise=of.rule()).sit(1).sit(2)
    return log.lay_out(of).ended(), None


@kind("tape", "commitment", "the rule within another one")
def _(of: Source) -> Made:
    log = Practice().open_table(x_more={"practice": of.rule()}).sit(1).sit(2)
    return log.lay_out(of).ended(), None


@kind("form", "", "the rule in a second TableOpened")
def _(of: Source) -> Made:
    log = Practice().open_table().open_table(practice=of.rule())
    return log.sit(1).open_round().close_round().lines(), None


@kind("form", "", "the rule in RoundOpened")
def _(of: Source) -> Made:
    log = Practice().open_table().open_round().close_round()
    log.leaves[1]["public"]["practice"] = of.rule()
    return log.lines(), None


@kind("form", "", "two rules of one name")
def _(of: Source) -> Made:
    lines = list(true(of).ended())
    lines[1] = lines[1].replace('"rules":{', '"rules":{"practice":{},')
    return lines, of.lines


@kind("tape", "insecure", "the rules of a practice table and of a test deck")
def _(of: Source) -> Made:
    return true(of, insecure_test_deck={"seed": "1"}).ended(), of.lines


@kind("tape", "must name table, round", "a malformed rule, and one of a test deck")
def _(of: Source) -> Made:
    return true(of, practice={}, insecure_test_deck={"seed": "1"}).ended(), of.lines


# What is given as its source.


@kind("tape", "The house signed no such root", "the same table with other events")
def _(of: Source) -> Made:
    return true(of).ended(), Source(source(secret="other")).lines


@kind("tape", "The house signed no such root", "the same game of a house with another key")
def _(of: Source) -> Made:
    return true(of).ended(), Source(source(house_seed=some_bytes("another house"))).lines


@kind("tape", "The source has a fault itself", "the same events in a header with another key")
def _(of: Source) -> Made:
    other = LogBuilder(house_seed=some_bytes("another house")).signer.public_key.hex()
    header = json.loads(of.lines[0]) | {"key": other}
    return true(of).ended(), [json.dumps(header, separators=(",", ":")), *of.lines[1:]]


@kind("tape", "The source has no closed round 1", "a source that ends before its round does")
def _(of: Source) -> Made:
    return true(of).ended(), source().lines()


@kind("tape", "The source has no closed round 2", "a source whose other round is open")
def _(_of: Source) -> Made:
    of = Source(source(rounds=2))
    return true(of).ended(), source(rounds=2).lines()


@kind("tape", "is of another table", "the practice table itself as its source")
def _(of: Source) -> Made:
    return true(of).ended(), true(of).ended()


@kind("tape", "names no source", "its source and itself exchanged")
def _(of: Source) -> Made:
    return of.lines, true(of).ended()


@kind("tape", "is not of round 1", "a version beyond the end of the source")
def _(of: Source) -> Made:
    return true(of, practice=of.rule(version=2**53 - 1)).ended(), of.lines


@kind("tape", "The source has a fault itself", "a source with a malformed rule")
def _(_of: Source) -> Made:
    of = Source(source(rules={"practice": {"table": "ab"}}))
    return true(of).ended(), of.lines


@kind("tape", "The source has a fault itself", "a source with a rule that it does not keep")
def _(of: Source) -> Made:
    """Only with a rule may the swaps of its first shuffle be others than the tape's."""
    forged = Practice(table=b"b" * 16).open_table().sit(1).sit(2)
    last = Source(forged.lay_out(of))
    return true(last).ended(), last.lines


@kind("tape", "in line 0: The file is empty", "an empty source")
def _(of: Source) -> Made:
    return true(of).ended(), [""]


@kind("tape", "The source has a fault itself", "an open source without Ada")
def _(of: Source) -> Made:
    return true(of).ended(), without("Ada", of.lines)


@kind("tape", "The source has a fault itself", "a source whose leaf was changed, and not opened")
def _(of: Source) -> Made:
    lines = without("Ada", of.closed)
    return true(of).ended(), [line.replace('"seat":1}', '"seat":2}') for line in lines]


@pytest.fixture(scope="module")
def made() -> dict[str, Bundle]:
    of = Source()
    made = {name: make(of) for name, (_, _, make) in KINDS.items()}
    return {name: Bundle(name, lines, source=given) for name, (lines, given) in made.items()}


@pytest.fixture(scope="module")
def reports(made: dict[str, Bundle]) -> dict[str, Report]:
    found, reports = compare([*made.values()])
    assert found == []
    return dict(zip(made, reports, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_both_verifiers_find_the_same(reports: dict[str, Report], name: str) -> None:
    (check, says, _), report = KINDS[name], reports[name]
    if check is None:
        assert report.fault is None, report.fault
        assert report.practice is not None
        assert report.practice.source == says
    else:
        assert report.fault is not None
        assert (report.fault.check, says in report.fault.sentence) == (check, True), report.fault


def test_both_use_the_same_words_of_practice_tables(
    made: dict[str, Bundle], reports: dict[str, Report]
) -> None:
    answers = ask(map(question, made.values()))
    for (name, report), answer in zip(reports.items(), answers, strict=True):
        if KINDS[name][1] not in OTHER_WORDS:
            assert answer["lines"] == report.lines(), name


def test_the_command_lines_exit_alike(made: dict[str, Bundle], tmp_path: Path) -> None:
    names = (
        "moves, a shuffle by the tape and a round after the layout",
        "a layout that its source would refuse",
        "a card played before the seats are left",
        "the same table with other events",
        "its source and itself exchanged",
        "an empty source",
    )
    for number, name in enumerate(names):
        arguments: list[str] = []
        for option, lines in (("", made[name].lines), ("--source", made[name].source)):
            if lines is not None:
                file = tmp_path / f"{number}{option}"
                file.write_text("".join(f"{line}\n" for line in map(str, lines)))
                arguments += [option, str(file)] if option else [str(file)]
        codes = [
            subprocess.run([*program, *arguments], capture_output=True, check=False).returncode
            for program in ([sys.executable, "-m", "dealer", "verify"], [node(), FILE])
        ]
        assert codes == ([3, 3] if KINDS[name][0] is None else [1, 1]), name


SURVIVES = re.compile(
    r"renumbered (?:end at|drop 21|(?:exchange|double) )|public\.(?:name|rules|commit_ms|reveal_ms)"
    r"|public\.entropy|\d+ at "
)
"""What a house may change in a practice table's log: times, names, and how its cards got there."""


def test_every_field_of_both_bundles_forged_and_signed_again() -> None:
    of, log = Source(), true(Source())
    lines, signer = log.ended(), log.signer
    mine = [*signed_again(lines, signer), *renumbered(lines, signer)]
    theirs = [*signed_again(of.lines, signer), *renumbered(of.lines, signer)]
    bundles = [Bundle(name, forged, source=of.lines) for name, forged in mine]
    bundles += [Bundle(f"source: {name}", lines, source=forged) for name, forged in theirs]
    found, reports = compare(bundles)
    assert found == []
    for bundle, report in zip(bundles, reports, strict=True):
        assert report.practice is not None or report.fault is not None
        if report.fault is None:
            assert SURVIVES.search(bundle.name), bundle.name
            assert not bundle.name.startswith("source"), bundle.name
