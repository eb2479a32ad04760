"""Names and texts may be withheld from a bundle, and nothing else: both verifiers, random games.

More mutants are tried by

    python -m tests.web.test_openings 10000             # numbers 0 … 9999
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import count, islice
from random import Random

import pytest

from dealer.game.events import TYPES
from dealer.proof.tree import leaf_hash
from dealer.proof.verify import Report
from tests.proof.log_builder import CARDS, HOUSE_SEED, LogBuilder, vectors
from tests.proof.test_verify import seated
from tests.web.forged_bundles import Base, dump
from tests.web.generated_logs import valid_log
from tests.web.js_verifier import Bundle, ask, compare, first, question

pytestmark = pytest.mark.slow


@cache
def closed_games(wanted: int) -> list[Base]:
    """Random games of closed tables, some of whose players sign."""
    logs = map(valid_log, count())
    closed = (log for log in logs if log.leaves[-1]["type"] == "TableClosed")
    return [Base.of("closed", log.lines(), HOUSE_SEED) for log in islice(closed, wanted)]


def withheld(chance: Random, base: Base) -> Base:
    """Any set of openings taken away."""
    share = chance.random()
    return base._replace(openings=[one for one in base.openings if chance.random() < share])


def hashed(line: str) -> str:
    """A line with the hash of what it replaces, as the house could have left a leaf out."""
    hash_ = leaf_hash(line.encode()).hex()
    leaf = json.loads(line)
    stone = {"at": leaf.get("at", 0), "hash": hash_, "public": {"seat": 1}, "type": "NoteAdded"}
    return dump({"tombstone": {**stone, "version": leaf.get("version", 0)}})


def mutant(number: int, games: int) -> tuple[str, Bundle]:
    """A game with one line taken away (no opening), replaced or hashed, after the line's kind.

    The house signs again what follows from it, in half of them. (It may always end a log earlier:
    only those who saw the rest can see that.)
    """
    chance = Random(f"mutant {number}")
    base = chance.choice(closed_games(games))
    if chance.random() < 0.5:
        base = withheld(chance, base)
    lines = list(map(str, base.lines()))
    kinds = {at: kind(line) for at, line in enumerate(lines)}
    wanted = chance.choice(sorted(set(kinds.values())))
    at = chance.choice([at for at, one in kinds.items() if one == wanted])
    ways = ["replaced", "hashed"] + ["opened"] * 3 if wanted == "opening" else WAYS
    match chance.choice(ways):
        case "taken away":
            changed = []
        case "replaced":
            changed = [chance.choice([line for line in lines if line != lines[at]])]
        case "hashed":
            changed = [hashed(lines[at])]
        case _:
            changed = [other_opening(chance, json.loads(lines[at]), lines)]
    leaves = base.leaves
    ended = at == len(leaves) and not changed
    if 1 <= at <= len(leaves) and not ended and chance.random() < 0.5:
        forged = base.signed([*leaves[: at - 1], *changed, *leaves[at:]]).lines()
    else:
        forged = [*lines[:at], *changed, *lines[at + 1 :]]
    return wanted, Bundle(f"{number}, {wanted} in line {at}", forged, base.signer.public.hex())


WAYS = ["taken away", "replaced", "hashed"]


def kind(line: str) -> str:
    members = json.loads(line)
    names = ("bundle", "header"), ("opened", "opening"), ("checkpoint", "checkpoint")
    return next((name for member, name in names if member in members), members.get("type", ""))


def other_opening(chance: Random, opening: dict[str, object], lines: list[str]) -> str:
    """An opening of the same version with another part or salt, or of another version."""
    part = opening["opened"]
    assert isinstance(part, dict)
    others = [one for line in lines if "opened" in (one := json.loads(line)) and one != opening]
    changes: list[Callable[[], dict[str, object]]] = [
        lambda: {"salt": chance.randbytes(32).hex()},
        lambda: {"opened": {**part, chance.choice(sorted(part)): "another"}},
        lambda: {"opened": {**part, "kind": "chat"}},
        lambda: {"version": chance.randrange(len(lines))} if chance.random() < 0.9 else {"zz": 1},
    ]
    if others:
        changes.append(lambda: {"opened": chance.choice(others)["opened"]})
    while (changed := {**opening, **chance.choice(changes)()}) == opening:
        pass
    return dump(changed)


def test_openings_of_the_vectors_in_the_same_words() -> None:
    for table in vectors("opened_bundles"):
        whole = table["in"]["lines"]
        lines = [
            [whole[n] if type(n) is int else n for n in case["lines"]] for case in table["out"]
        ]
        bundles = [Bundle(case["name"], one) for case, one in zip(table["out"], lines, strict=True)]
        found, reports = compare(bundles)
        assert found == []
        for bundle, report, answer in zip(
            bundles, reports, ask(map(question, bundles)), strict=True
        ):
            assert answer["withheld_parts"] == report.withheld_parts, bundle.name
            assert answer["withheld_cosigners"] == report.withheld_cosigners, bundle.name
            if report.ok:
                assert answer["lines"] == report.lines(), bundle.name


def test_any_set_of_openings_may_be_withheld() -> None:
    """No verdict changes but the count of what is withheld, and of what those players signed."""
    games = closed_games(60)
    chance = Random("withheld")
    sets = [(whole, withheld(chance, whole)) for whole in games for _ in range(3)]
    found, reports = compare([Bundle(one.name, one.lines()) for _, one in sets])
    assert found == []
    wholes = {id(whole): first(Bundle(whole.name, whole.lines())) for whole in games}
    for (whole, one), report in zip(sets, reports, strict=True):
        missing = [json.loads(line) for line in whole.openings if line not in one.openings]
        assert report.withheld_parts == [opening["version"] for opening in missing]
        assert without_counts(report) == without_counts(wholes[id(whole)])
        signed = wholes[id(whole)].cosigners
        assert sorted(signed | report.withheld_cosigners) == sorted(
            {*report.cosigners, *report.withheld_cosigners}
        )
        assert (report.cosigners | report.withheld_cosigners) == signed
    assert sum(len(report.withheld_cosigners) for report in reports) > 20


def without_counts(report: Report) -> Report:
    return replace(
        report,
        withheld_parts=[],
        withheld_cosigners={},
        cosigners={},
        cosigned_upto={},
        names={},
        remarks=replace(report.remarks, cosigned=0),
    )


def test_nothing_else_may_be_withheld() -> None:
    """A sample; more are tried by `python -m tests.web.test_openings`."""
    kinds, alive = survivors(range(400), games=40)
    assert not alive
    assert len(kinds) == len(TYPES) + 3


def survivors(numbers: range, games: int) -> tuple[Counter[str], list[str]]:
    """The kinds of the changed lines, and the mutants without a fault or with two faults."""
    kinds, mutants = zip(*(mutant(number, games) for number in numbers), strict=True)
    found, reports = compare(mutants)
    alive = [one.name for one, report in zip(mutants, reports, strict=True) if report.ok]
    return Counter(kinds), [*map(str, found), *alive]


def ignoring_bytes(log: LogBuilder) -> None:
    """A shuffle whose tape leaves out the bytes that seat 1 has revealed."""
    log.start().commit(1).close().reveal(1)
    for step in log.plan([]):
        log.swap(*step)
    log.seal()


def cutting_at_will(log: LogBuilder) -> None:
    """A cut in the middle of a shuffle, when the house knows the tape."""
    log.start().cut(3).close()
    for step in log.plan([]):
        log.swap(*step)
    log.seal()


def peeking(log: LogBuilder) -> None:
    log.shuffle().peek(6, 2)


def drawing_and_returning(log: LogBuilder) -> None:
    log.shuffle().draw(1).move(log.stacks["hand:1"][0], "hand:1", "deck", 0)


def playing_another_round(log: LogBuilder) -> None:
    log.shuffle().close_round().open_round().shuffle().draw(2)


@pytest.mark.parametrize(
    ("cheat", "hidden"),
    [
        (ignoring_bytes, ("EntropyCommitted", "EntropyRevealed")),
        (cutting_at_will, ("StackCut",)),
        (peeking, ("CardPeeked",)),
        (drawing_and_returning, ("CardDrawn", "CardMoved")),
        (playing_another_round, ("RoundOpened",)),
    ],
)
def test_a_house_can_hide_no_cheat(
    cheat: Callable[[LogBuilder], None], hidden: tuple[str, ...]
) -> None:
    """What it did is in the bundle, or the bundle is refused: no hash stands for a leaf."""
    log = seated().open_round(CARDS, "players")
    start = len(log.leaves)
    cheat(log)
    base = Base.of(cheat.__name__, log.close_round().close_table().lines(), HOUSE_SEED)
    places = [at for at in range(start, len(base.leaves)) if kind(base.leaves[at]) in hidden]
    assert places
    leaves = [hashed(one) if at in places else one for at, one in enumerate(base.leaves)]
    bundles = [
        Bundle("as it was signed", base._replace(leaves=leaves).lines()),
        Bundle("signed again", base.signed(leaves).lines()),
    ]
    found, reports = compare(bundles)
    assert found == []
    for report in reports:
        assert report.fault is not None
        assert (report.fault.check, report.fault.line) == ("form", places[0] + 1)


def _try(wanted: int) -> bool:
    """Whether no mutant survives."""
    alive = []
    for start in range(0, wanted, 1000):
        kinds, more = survivors(range(start, min(start + 1000, wanted)), games=400)
        alive += more
        print(start, dict(kinds), *more, sep="\n    ")
    return not alive


if __name__ == "__main__":
    sys.exit(0 if _try(int(sys.argv[1])) else 1)
