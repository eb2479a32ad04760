"""Forged bundles: every modified line and field is detected, with and without new signatures.

The modifications that pass are listed: each gives another valid log of the same house.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.proof.checkpoint import Signer
from dealer.proof.verify import Report, verify
from tests.proof import forge
from tests.proof.log_builder import LogBuilder, note_of, vectors

pytestmark = pytest.mark.slow

AUDIT = vectors("audit")[0]["in"]
LINES: list[str] = AUDIT["lines"]
KEY: str = AUDIT["key"]
HOUSE = Signer(bytes.fromhex(vectors("table")[0]["in"]["house_seed"]))
AUDIT_REPORT = verify(LINES, key=KEY)
SIZES = {
    n: int(note_of(line).split("\n")[1])
    for n, line in enumerate(LINES)
    if line.startswith('{"checkpoint"')
}
WITHHELD = {f"drop {n}" for n, line in enumerate(LINES) if line.startswith('{"opened"')}

# A cosignature may be left out, because none is required.
WITHOUT_COSIGNATURE = {
    f"note {n} line {line} without"
    for n, lines in ((65, "56"), (70, "5"), (76, "56"))
    for line in lines
}
# No later hash or shuffle depends on these.
ANOTHER_VALID_LOG = {
    "signed 49 public.seat + 1",
    "signed 51 public.to other",
    "signed 59 public.seat - 1",
    "signed 61 at huge",
    "renumbered drop 59",
    "renumbered drop 61",
    *(f"signed {n} at {sign} 1" for n in range(57, 62) for sign in "+-"),
}
# These change C1 and thus the tape, which gives the same swaps of a few cards by chance.
BY_CHANCE = {
    "signed 11 at - 1",
    "signed 14 at + 1",
    "signed 32 at + 1",
    "signed 33 at - 1",
    "signed 36 at - 1",
    "signed 37 at + 1",
    "signed 37 at - 1",
    "signed 38 at + 1",
    "signed 43 at - 1",
    "signed 45 at + 1",
    "signed 45 at - 1",
    "signed 46 at + 1",
    "signed 46 at - 1",
    "signed 47 at + 1",
    "signed 48 at + 1",
    "signed 48 at - 1",
    "signed 49 at - 1",
    "signed 49 public.seat - 1",
    "signed 50 at + 1",
    "signed 51 at + 1",
    "signed 51 public.to longer",
    "signed 52 at + 1",
    "signed 53 at - 1",
    "signed 54 at + 1",
    "signed 54 public.entropy other",
    "signed 54 public.reveal_ms + 1",
    "signed 54 public.reveal_ms - 1",
    "signed 56 at - 1",
    "renumbered exchange 34",
}
PASSES = WITHOUT_COSIGNATURE | ANOTHER_VALID_LOG | BY_CHANCE


def outcome(report: Report) -> tuple[str, int] | None:
    return None if report.fault is None else (report.fault.check, report.fault.line)


def head_over(version: int) -> int:
    """The line of the first checkpoint over this leaf."""
    return next(line for line, size in SIZES.items() if size >= version)


def check(forgeries: Iterable[forge.Forgery]) -> None:
    seen = False
    for name, lines in forgeries:
        seen = True
        found = outcome(verify(lines, key=KEY))
        assert (found is None) == (name in PASSES), (name, found)
    assert seen


def test_the_bundle_is_honest() -> None:
    assert outcome(verify(LINES, key=KEY, saved=AUDIT["saved"])) is None


def test_changed_lines_are_detected() -> None:
    for name, lines in forge.whole_lines(LINES):
        report = verify(lines, key=KEY)
        found = outcome(report)
        if name in WITHHELD:
            assert (found, len(report.withheld_parts)) == (None, 1), name
        else:
            assert found is not None, name
            assert found[0] in ("form", "heads"), name


def test_changed_openings_are_detected() -> None:
    for name, lines in forge.openings(LINES):
        found = outcome(verify(lines, key=KEY))
        assert found is not None, name
        assert found[0] in ("form", "secrets"), name


def test_a_changed_header_is_detected() -> None:
    check(forge.header(LINES))


def test_changed_notes_are_detected() -> None:
    check(forge.notes(LINES))


def test_changed_fields_are_detected() -> None:
    """A changed leaf is malformed, or the first checkpoint over it does not match the log."""
    for name, lines in islice(forge.as_they_are(LINES), 0, None, 5):
        version = int(name.split()[2])
        found = outcome(verify(lines, key=KEY))
        late = ("form", version + 1) if " at " in name else None
        pinned = ("heads", 1) if version == 1 else None
        assert found in (("form", version), ("heads", head_over(version)), late, pinned), name
        assert found is not None


def test_fields_signed_again() -> None:
    check(forge.signed_again(LINES, HOUSE, lambda number, name: number % 11 == 0))


def test_a_replaced_log_is_detected_with_a_saved_checkpoint() -> None:
    """Only a user with a saved checkpoint detects a log that the house replaced."""
    forged = list(forge.signed_again(LINES, HOUSE, lambda number, name: name in PASSES))
    assert {name for name, _ in forged} == {n for n in PASSES if n.startswith("signed")}
    for name, lines in forged:
        assert outcome(verify(lines, key=KEY)) is None, name
        found = outcome(verify(lines, key=KEY, saved=AUDIT["saved"]))
        assert found is not None, name
        assert found[0] == "saved", name


def test_dropped_doubled_and_exchanged_events_are_detected() -> None:
    for name, lines in forge.renumbered(LINES, HOUSE):
        if " end at " not in name:
            check([(name, lines)])
            continue
        assert outcome(verify(lines, key=KEY)) is None, name
        version = int(name.split()[-1])
        saved = [note for note in AUDIT["saved"] if int(note.split("\n")[1]) >= version]
        assert outcome(verify(lines, key=KEY, saved=saved)) is not None, name


def test_a_table_of_another_house_passes_only_without_a_key() -> None:
    """Without a pinned key a table of another house passes; with it, no line of it does."""
    lines = LogBuilder(table=bytes(16)).open_table().sit(1).close_table().lines()
    assert outcome(verify(lines)) is None
    assert outcome(verify(lines, key=KEY)) == ("heads", 0)
    mixed = [LINES[0], *lines[1:]]
    assert outcome(verify(mixed, key=KEY)) == ("form", 1)


def test_a_change_of_any_byte_is_detected() -> None:
    """Except in the name and key id of a cosignature, which make it one of an unknown key."""
    for line, text in enumerate(LINES):
        raw = text.encode()
        players = [match.span() for match in re.finditer(rb"player/[0-9a-f]{64} .{6}", raw)]
        for at in range(line % 37, len(raw), 37):
            for flip in (1, 0x20):
                changed = raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :]
                report = verify([*LINES[:line], changed, *LINES[line + 1 :]], key=KEY)
                if any(start <= at < end for start, end in players):
                    cosigned = AUDIT_REPORT.remarks.cosigned
                    assert report.fault or report.remarks.cosigned == cosigned - 1
                else:
                    assert report.fault is not None, (line, at)


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["at", "public", "table", "type", "v", "version", "seat", "checkpoint"])
            | st.text(max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=9,
)


@given(st.lists(st.text() | st.binary() | JSON_LIKE.map(repr), max_size=6), st.data())
def test_garbage_is_a_fault_and_raises_no_error(
    junk: list[str | bytes], data: st.DataObject
) -> None:
    assert verify(junk, key=data.draw(st.text() | st.binary())).fault is not None
    at = data.draw(st.integers(0, len(LINES)))
    lines = [*LINES[:at], *junk, *LINES[at:]]
    report = verify(lines, saved=data.draw(st.lists(st.text(), max_size=2)))
    assert report.fault is not None or not junk
    assert report.verdicts()


@pytest.mark.parametrize("text", ["", "\n", "x\n\ny\n", "\ud800", "\u2014", "a\n1\n\n\u2014 b c\n"])
def test_a_saved_note_that_is_garbage_is_a_fault(text: str) -> None:
    assert outcome(verify(LINES, saved=[text])) == ("saved", 0)
