"""The Python and the JavaScript verifier report the same fault, line and counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from dealer.proof.bundle import restore
from dealer.proof.verify import CHECKS, Report
from tests.proof import forge
from tests.proof.log_builder import (
    CARDS,
    HOUSE_SEED,
    LogBuilder,
    note_of,
    openings_of,
    some_bytes,
)
from tests.proof.test_forging import HOUSE, KEY, LINES
from tests.proof.test_rules import LEGAL, RULES
from tests.proof.test_saved_files import BUNDLE, LOSSLESS, OTHER, report_on
from tests.proof.test_verify import everything, reusing_nonces
from tests.web import mutated_notes
from tests.web.forged_bundles import ODD, dump, forged
from tests.web.js_verifier import Bundle, Line, ask, compare
from tests.web.mutated_notes import NoteSigner
from tests.web.played_tables import Played, real_tables

pytestmark = pytest.mark.slow

HOUSE_KEY = NoteSigner(HOUSE_SEED).public.hex()


def agreed_reports(bundles: Iterable[Bundle]) -> list[Report]:
    found, reports = compare(list(bundles))
    assert found == []
    return reports


@pytest.fixture(scope="module")
def real() -> list[Played]:
    return real_tables()


def test_both_verifiers_agree_on_real_tables(real: list[Played]) -> None:
    """2 to 10 seats, 52 to 416 cards, with and without nonces, voided shuffles, random draws."""
    reports = agreed_reports(played.bundle for played in real)
    assert [report.fault for report in reports] == [None] * 5
    assert [report.remarks.voided for report in reports] == [1, 0, 1, 0, 0]
    assert [len(report.swaps) > 50 for report in reports] == [True] * 5


def test_both_verifiers_agree_on_each_rule() -> None:
    def logs() -> Iterator[tuple[str, LogBuilder]]:
        for name, build, act in [rule[1:] for rule in RULES] + LEGAL:
            for whole in (False, True):
                log = build()
                act(log)
                if whole and log.round:
                    log.close_round()
                yield name, log
        yield "everything", everything()

    reports = agreed_reports(Bundle(name, log.lines(), HOUSE_KEY) for name, log in logs())
    assert sum(report.fault is not None for report in reports) > len(RULES)


def test_both_verifiers_count_reused_nonces() -> None:
    (report,) = agreed_reports([Bundle("reused nonces", reusing_nonces().lines(), HOUSE_KEY)])
    assert report.ok
    assert report.remarks.reused == 4


def test_both_verifiers_agree_on_changes_of_each_field() -> None:
    """A sample; all of them are tried by `python -m tests.web.forged_bundles fields`."""
    forgeries = [
        *islice(forge.whole_lines(LINES), 0, None, 9),
        *forge.header(LINES),
        *islice(forge.notes(LINES), 0, None, 5),
        *islice(forge.as_they_are(LINES), 0, None, 40),
        *forge.signed_again(LINES, HOUSE, lambda number, name: number % 29 == 0),
        *islice(forge.renumbered(LINES, HOUSE), 0, None, 3),
    ]
    assert len(forgeries) > 300
    agreed_reports(Bundle(name, lines, KEY) for name, lines in forgeries)


def test_both_verifiers_agree_on_random_forgeries(real: list[Played]) -> None:
    """A sample; more are tried by `python -m tests.web.forged_bundles`."""
    reports = agreed_reports(forged(number, real[:4]) for number in range(300))
    assert {report.fault.check for report in reports if report.fault} == set(CHECKS)


def test_saved_checkpoints_against_truncated_logs() -> None:
    """Saved checkpoints against logs of several lengths."""
    notes = [forge.note_of(line) for line in LINES if line.startswith('{"checkpoint"')]
    leaves = forge.leaves_of(LINES)
    origin = forge.decode(LINES[0])["origin"]
    opened = {json.loads(line)["version"]: line for line in openings_of(LINES)}
    cut = {
        size: forge.sign(
            leaves[:size], HOUSE, origin, [opened[one] for one in opened if one <= size]
        )
        for size in (1, 20, 40, len(leaves))
    }
    other = HOUSE.sign(origin=origin, size=20, root=some_bytes("root"))
    lists = [[other], [*notes, other], notes, notes[::-1], [], ["\ud800"]]
    lists += [[notes[0], "garbage"], ["garbage", notes[0]]]
    reports = agreed_reports(
        Bundle(f"{size}, {n}", lines, KEY, saved)
        for size, lines in cut.items()
        for n, saved in enumerate(lists)
    )
    assert sum(report.ok for report in reports) == 4 + 2


GARBAGE: list[list[Line]] = [
    [],
    [""],
    ["", ""],
    ["\n"],
    [b""],
    [b"\xff"],
    ["\ud800"],
    ["null"],
    ["7"],
    ["[]"],
    ["{}"],
    ["[" * 100_000],
    ["[" * 100_000 + "]" * 100_000],
    ['{"a":' * 50_000],
    ["1" * 10_000],
    ["\ufeff" + LINES[0], *LINES[1:]],
    [b"\xef\xbb\xbf" + LINES[0].encode(), *LINES[1:]],
    [f"{LINES[0]}\r", *LINES[1:]],
    [LINES[0]],
    [LINES[0], LINES[-1]],
    [LINES[0], LINES[-1], LINES[1]],
    [*LINES[:2], LINES[-1], LINES[3]],
    [*LINES, ""],
    [*LINES, LINES[-1]],
    [*LINES[:-1], '{"checkpoint":"\\n"}'],
    [*LINES[:-1], '{"checkpoint":""}'],
    [*LINES[:-1], '{"checkpoint":7}'],
    [*LINES[:-1], '{"checkpoint":"\\u000a"}'],
    [*LINES[:-1], '{"checkpoint":"a","x":"\\n"}'],
]


def test_malformed_bundles_give_a_fault_and_no_exception() -> None:
    reports = agreed_reports(Bundle(str(n), lines) for n, lines in enumerate(GARBAGE))
    assert all(report.fault for report in reports)


def test_both_verifiers_agree_on_each_member_of_each_type() -> None:
    """Each member of each kind of line, with any value; a well-formed leaf needs a checkpoint."""
    shown: dict[str, dict[str, Any]] = {leaf["type"]: leaf for leaf in everything().leaves}
    first = [*everything().lines()[:2]]

    def bundles() -> Iterator[Bundle]:
        for type_, leaf in shown.items():
            public = leaf["public"]
            renumbered = {**leaf, "version": 1 if type_ == "TableOpened" else 2}
            bare = {name: member for name, member in renumbered.items() if name != "commit"}
            others = [bare, {**bare, "commit": "0" * 64}]
            for value in ODD:
                if type_ in ("SeatTaken", "CardsSwapped"):
                    others += [{**renumbered, name: value} for name in (*renumbered, "zz")]
                for name in (*public, "key", "zz"):
                    others.append({**renumbered, "public": {**public, name: value}})
            for name in public:
                rest = {other: member for other, member in public.items() if other != name}
                others.append({**renumbered, "public": rest})
            for changed in others:
                yield Bundle(f"{changed}", [*first[: renumbered["version"]], dump(changed)])

    reports = agreed_reports(bundles())
    formed = [r for r in reports if r.fault is not None and r.fault.check == "heads"]
    assert len(formed) > 200
    assert len(reports) - len(formed) > 3000


def test_both_verifiers_agree_on_malformed_notes() -> None:
    """Malformed notes, in a bundle and among the saved ones."""
    log = LogBuilder().open_table().sit(1, keyed=True).close_table()
    *lines, last = log.lines()
    note = note_of(last)
    text, _, below = note.rpartition("\n\n")
    signer = NoteSigner(HOUSE_SEED)
    texts = mutated_notes.other_texts(log.origin, "3", mutated_notes.root_of(lines[1:]))
    notes = [f"{other}\n{signer.sign(other, log.origin)}\n" for other in texts]
    lines_below = mutated_notes.other_lines(f"{text}\n", below, log.origin, signer)
    notes += [f"{text}\n\n{other}" for other in lines_below]
    served = agreed_reports(
        Bundle(repr(other), [*lines, mutated_notes.line(other)]) for other in notes
    )
    saved = agreed_reports(Bundle(repr(other), log.lines(), None, [other]) for other in notes)
    for reports in (served, saved):
        assert 3 < sum(report.ok for report in reports) < len(notes) / 2


def test_both_verifiers_reject_a_secret_of_another_length() -> None:
    secrets = [some_bytes("S", length=length) for length in (1, 31, 32, 33, 64, 96, 128)]
    logs = [
        LogBuilder().open_table().open_round(CARDS, secret=secret).close_round()
        for secret in secrets
    ]
    reports = agreed_reports(Bundle("", log.lines(), HOUSE_KEY) for log in logs)
    assert [report.ok for report in reports] == [len(secret) == 32 for secret in secrets]


def test_both_verifiers_agree_on_saved_files() -> None:
    """What is undone, the notes of it, the fault, and what the fault says of the file."""
    cut = [BUNDLE[:size] for size in range(0, len(BUNDLE), 307)]
    files = [change(BUNDLE) for change, _ in LOSSLESS.values()]
    files += [file for file, _, _ in OTHER.values()]
    files += cut + [part.replace(b"\n", b"\r\n") for part in cut]
    answers = ask({"do": "file", "file": file.hex()} for file in files)
    named = 0
    for file, answer in zip(files, answers, strict=True):
        data, notes = restore(file)
        assert (answer["bytes"], answer["restored"]) == (data.hex(), notes)
        ours, theirs = report_on(file), answer["report"]
        assert theirs["notes"] == ours.notes
        if ours.fault is None:
            assert theirs["fault"] is None
            assert answer["lines"] == ours.lines()
            continue
        assert (theirs["fault"]["check"], theirs["fault"]["line"]) == (
            ours.fault.check,
            ours.fault.line,
        )
        if ours.fault.sentence.startswith(("This ", "The file ", "A byte order mark ")):
            own = ours.fault.sentence.startswith(("This is not", "This leaf"))
            named += not own
            assert own or theirs["fault"]["sentence"] == ours.fault.sentence
    assert named > len(OTHER) + len(cut)
