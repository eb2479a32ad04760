"""The verifier on complete tables: vectors, valid games, and the counts of the report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from dealer.proof.verify import CHECKS, verify
from tests.proof.log_builder import (
    CARDS,
    LogBuilder,
    from_script,
    ids,
    note_of,
    some_bytes,
    vectors,
)


@pytest.mark.parametrize("vector", vectors("table"), ids=ids)
def test_table_vectors(vector: dict[str, Any]) -> None:
    log = from_script(vector["in"])
    assert log.lines() == vector["out"]["lines"]
    assert [list(part) for part in log.hidden] == vector["out"]["hidden"]
    assert verify(vector["out"]["lines"]).ok


@pytest.mark.parametrize("vector", vectors("audit"), ids=ids)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_audit_vectors(vector: dict[str, Any], as_bytes: bool) -> None:
    given, wanted = vector["in"], vector["out"]
    lines = [line.encode() if as_bytes else line for line in given["lines"]]
    key = bytes.fromhex(given["key"]) if as_bytes else given["key"]
    report = verify(lines, key=key, saved=given["saved"])
    fault = report.fault
    assert (None if fault is None else [fault.check, fault.line]) == wanted["fault"]
    remarks = asdict(report.remarks)
    assert {name: remarks[name] for name in wanted["remarks"]} == wanted["remarks"]


def seated(*seats: int) -> LogBuilder:
    log = LogBuilder().open_table()
    for seat in seats or (1, 2, 10):
        log.sit(seat, keyed=True)
    return log


def everything() -> LogBuilder:
    """A game with every type of event and every kind of move."""
    log = seated().open_round(CARDS, "players")
    log.cut(3).commit(2).append("SeatLeft", seat=2).sit(2, "Bea")
    log.note(1, "poker.bet", '{"bet":5}').transfer(2).sit(3, "Robby", keyed=True, bot=True)
    log.vacate(3, reason="away for ten minutes").note()
    log.shuffle(seats=[10, 2, 1], reveal=[1, 2, 10], cosign=[1])
    for seat in (1, 2, 10, 1):
        log.draw(seat)
    log.move(2, "deck", "pile:burn").peek(1, 2).cut(1).show(6)
    log.move(6, "hand:1", "pile:discard").move(5, "hand:2", "hand:1", 1)
    log.move(3, "hand:1", "hand:1", 1).draw(2, 2, "pile:burn").append("SeatLeft", seat=10)
    log.move(4, "hand:10", "deck", 1).draw(1, 1)
    log.commit(1, k=1).start(algorithm="forward").commit(2).close().reveal(1).void()
    log.shuffle(algorithm="forward", seats=[1]).draw(2)
    log.shuffle(stack="pile:discard").shuffle(stack="pile:none").close_round()
    log.open_round(("T1", "T2"), "house").shuffle(steps=1).draw(1).close_round()
    return log.close_table(cosign=[1])


def test_every_event_type_verifies() -> None:
    log = everything()
    types = {leaf["type"] for leaf in log.leaves}
    assert len(types) == 21
    report = verify(log.lines(), key=log.signer.public_key)
    assert report.fault is None
    assert asdict(report.remarks) == {
        "rounds": 2,
        "open_rounds": 0,
        "shuffles": 6,
        "voided": 1,
        "house_only": 3,
        "left_out": 2,
        "withheld": 1,
        "reused": 0,
        "not_top": 1,
        "cosigned": 2,
        "pinned": True,
    }


def test_left_out_and_withholding_seats_are_counted() -> None:
    log = seated().open_round(CARDS, "players").start().commit(1).commit(2).close()
    log.reveal(1).void().shuffle(seats=[1, 10]).shuffle(seats=[]).close_round().close_table()
    remarks = verify(log.lines()).remarks
    assert remarks.left_out == 1 + 0 + 2
    assert remarks.withheld == 1
    assert (remarks.shuffles, remarks.voided, remarks.house_only) == (3, 1, 1)


def reusing_nonces() -> LogBuilder:
    """Nonces that were revealed before: by the same seat, by another, in a void, in a round."""
    log, used, twice = seated(), b"\x01" * 32, b"\x02" * 32
    log.nonces = {"1.0.1": used, "1.1.1": used, "1.2.10": used, "2.0.2": used}
    log.nonces |= {"2.0.1": twice, "2.0.10": twice}
    log.open_round(CARDS, "players").shuffle(seats=[1, 10])
    log.start().commit(1).commit(2).close().reveal(1).void().shuffle(seats=[1, 10]).close_round()
    log.open_round(CARDS, "players").shuffle(seats=[1, 2, 10]).close_round()
    return log.close_table()


def test_a_reused_nonce_is_counted_and_is_no_fault() -> None:
    report = verify(reusing_nonces().lines())
    assert report.ok
    assert report.remarks.reused == 4
    sentence = "Reused nonces: 4. A reused nonce harms only the player who sent it."
    assert sentence in report.verdicts()


def test_a_count_of_zero_is_not_explained() -> None:
    log = seated().open_round(CARDS, "players").shuffle(seats=[1, 2, 10])
    counts = list(verify(log.close_round().close_table().lines()).verdicts())
    assert "Rounds: 1." in counts
    assert "Shuffles: 1, 0 of them voided, 0 without any player's bytes." in counts
    assert "Seats left out of a shuffle: 0; that did not reveal their bytes: 0." in counts
    assert "Reused nonces: 0." in counts


def test_the_swaps_are_reported() -> None:
    log = seated().open_round(CARDS, "players").shuffle(seats=[1, 10])
    swaps = verify(log.close_round().close_table().lines()).swaps
    order = list(CARDS)
    for number, swap in enumerate(swaps):
        assert (swap.round, swap.shuffle_index, swap.step, swap.i) == (1, 0, number, 6 - number)
        assert swap.cards == (order[swap.i], order[swap.j])
        assert swap.words[-1] % (swap.i + 1) == swap.j
        assert log.leaves[swap.version - 1]["type"] == "CardsSwapped"
        order[swap.i], order[swap.j] = order[swap.j], order[swap.i]
    assert order == log.faces
    assert len(swaps) == 6


def test_rejected_words_are_reported() -> None:
    deck = [f"{number:04}" for number in range(1000)]
    log = seated().open_round(deck).shuffle().close_round().close_table()
    report = verify(log.lines())
    assert report.ok
    refused = [word for swap in report.swaps for word in swap.words[:-1]]
    assert refused
    for swap in report.swaps:
        limit = 65536 - 65536 % (swap.i + 1)
        assert all(word >= limit for word in swap.words[:-1])
        assert swap.words[-1] < limit


def test_an_open_round_is_checked_as_far_as_it_can_be() -> None:
    log = seated().open_round(CARDS, "players").shuffle(seats=[1]).draw(1)
    lines = log.lines()
    report = verify(lines)
    assert report.ok
    assert report.remarks.open_rounds == 1
    assert not report.swaps
    log.append("CardsSwapped", {"j": 0}, round=1, k=1, step=0, i=0)
    fault = verify(log.lines()).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("tape", len(log.leaves))


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("algorithm", ["backward", "forward"])
def test_shuffles_of_small_stacks_verify(n: int, algorithm: str) -> None:
    log = seated().open_round(("As", "Kh")).shuffle()
    for slot in range(n):
        log.move(slot, "deck", "pile:p")
    log.shuffle(stack="pile:p", algorithm=algorithm).shuffle(stack="pile:p", steps=0)
    assert verify(log.close_round().close_table().lines()).ok


def test_a_table_verifies_only_with_its_key() -> None:
    log = everything()
    lines, key = log.lines(), log.signer.public_key
    assert verify(lines).remarks.pinned is False
    assert verify(lines, key=key.hex()).ok
    for wrong in (some_bytes("x"), b"", "", "zz", key.hex().upper()):
        fault = verify(lines, key=wrong).fault
        assert fault is not None
        assert (fault.check, fault.line) == ("heads", 0)


def test_saved_checkpoints_of_another_log_are_faults() -> None:
    log = everything()
    lines = log.lines()
    notes = [note_of(line) for line in lines if line.startswith('{"checkpoint"')]
    early = log.signer.sign(origin=log.origin, size=2, root=some_bytes("x"))
    late = log.signer.sign(origin=log.origin, size=999, root=some_bytes("x"))
    other = LogBuilder(house_seed=some_bytes("another house")).open_table()
    unknown = note_of(other.lines()[-1])
    table = LogBuilder(table=some_bytes("t", length=16)).open_table()
    assert verify(lines, saved=notes).ok
    assert verify(lines, saved=notes[::-1]).ok
    for saved, line in (
        ([*notes, early], 2),
        ([late], 999),
        ([notes[0], unknown], 0),
        ([note_of(table.lines()[-1])], 0),
        (["garbage"], 0),
        ([b"bytes"], 0),
        ([early, "garbage"], 0),
        ([late, early], 999),
    ):
        fault = verify(lines, saved=saved).fault  # type: ignore[arg-type]
        assert fault is not None
        assert (fault.check, fault.line) == ("saved", line)


def test_a_saved_checkpoint_between_those_of_the_bundle() -> None:
    log = everything()
    half = LogBuilder().open_table().sit(1, keyed=True)
    assert half.leaves == log.leaves[:2]
    assert verify(log.lines(), saved=[note_of(half.lines()[-1])]).ok


def test_additional_checkpoints_are_accepted() -> None:
    log = everything()
    lines = log.lines()
    first = next(n for n, line in enumerate(lines) if line.startswith('{"checkpoint"'))
    half = LogBuilder().open_table().sit(1, keyed=True)
    assert verify([*lines[:first], half.lines()[-1], *lines[first:]]).ok


@pytest.mark.parametrize(
    "bundle",
    [
        [],
        [""],
        [b""],
        ["{}"],
        ["null"],
        ["[]"],
        [None],
        [b"\xff"],
        ["\ud800"],
        "text",
        [7],
        ["[" * 100_000],
        [{}],
        ['"bundle"'],
        ['{"bundle":"dealer/v1"}'],
    ],
)
def test_garbage_is_a_form_fault(bundle: Any) -> None:
    fault = verify(bundle).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", 0)


def test_a_header_alone_lacks_its_first_event() -> None:
    fault = verify(seated().lines()[:1]).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", 1)


def test_verdicts_are_sentences() -> None:
    lines = everything().lines()
    report = verify(lines)
    verdicts = report.verdicts()
    assert [line.split(":")[0] for line in verdicts[:7]] == list(CHECKS)
    assert all(": yes" in line for line in verdicts[:7])
    assert verdicts[7] == "Rounds: 2."
    assert "Ada" in "".join(verdicts)
    assert "was taken from the bundle" in verdicts[-1]
    faulty = verify(lines[:-1])
    answers = faulty.verdicts()[:7]
    assert answers[0].startswith("form: yes")
    assert answers[1].startswith("heads: no, in line")
    assert answers[2:] == [f"{check}: not checked" for check in CHECKS[2:]]


def test_a_check_that_was_made_of_nothing_has_not_passed() -> None:
    whole = everything().lines()
    states = {one.check: one.state for one in verify(whole).results()}
    assert states == dict.fromkeys(CHECKS, "passed") | {"saved": "not checked"}
    unsigned = {one.check: one.state for one in verify(whole[:-1]).results()}
    assert list(unsigned.values()) == ["passed", "failed", *["not checked"] * 5]
    open_round = {one.check: one.state for one in verify(seated().lines()).results()}
    assert {check for check, state in open_round.items() if state == "not checked"} == {
        "saved", "tape", "seals",
    }  # fmt: skip
    line = verify(whole).lines()[0]
    assert line == "passed: Each line is well formed (form): every line is in canonical form."


def test_progress_is_reported_to_the_end() -> None:
    lines = seated().open_round([f"{n:04}" for n in range(300)]).shuffle().lines()
    seen: list[tuple[int, int]] = []
    assert verify(lines, progress=lambda done, total: seen.append((done, total))).ok
    assert seen == sorted(seen)
    assert seen[-1] == (2 * len(lines), 2 * len(lines))
    assert len(seen) == 3
