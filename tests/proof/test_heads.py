"""Check `heads`: the required checkpoints, their roots and signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dealer.proof import bundle
from dealer.proof.checkpoint import Cosigner, Signer, read_checkpoint
from dealer.proof.tree import Tree, leaf_hash
from dealer.proof.verify import verify
from tests.proof.log_builder import (
    CARDS,
    LogBuilder,
    cosignature,
    ids,
    note_of,
    some_bytes,
    vectors,
)

ADA = Cosigner(some_bytes("player", 1))


def complete_log() -> LogBuilder:
    log = LogBuilder().open_table().sit(1, keyed=True).open_round(CARDS[:2], "players")
    return log.shuffle(seats=[1]).draw(1).close_round().close_table()


LINES = complete_log().lines()
FIRST = next(n for n, line in enumerate(LINES) if line.startswith('{"checkpoint"'))
NOTES = [note_of(line) for line in LINES[FIRST:]]
SIZES = [int(note.split("\n")[1]) for note in NOTES]
HOUSE = complete_log().signer
ORIGIN = complete_log().origin
LEAVES = [leaf_hash(line.encode()) for line in LINES[1:FIRST]]


def root(size: int) -> bytes:
    tree = Tree()
    tree.extend(LEAVES[:size])
    return tree.root()


def head(
    size: int, *, over: int | None = None, origin: str = ORIGIN, signer: Signer = HOUSE
) -> str:
    return signer.sign(origin=origin, size=size, root=root(size if over is None else over))


def outcome(notes: list[str], lines: list[str] | None = None) -> tuple[str, int] | None:
    log = (lines or LINES)[:FIRST] + [bundle.checkpoint(note) for note in notes]
    fault = verify(log, key=HOUSE.public_key).fault
    return None if fault is None else (fault.check, fault.line)


def with_first(change: Callable[[str], str]) -> list[str]:
    return [change(NOTES[0]), *NOTES[1:]]


def test_valid_heads_verify() -> None:
    assert outcome(NOTES) is None
    assert outcome(with_first(lambda note: head(SIZES[0]))) is None
    assert outcome([head(0), *NOTES]) is None
    assert outcome([head(1), *NOTES]) is None


@pytest.mark.parametrize("n", range(4))
def test_a_missing_checkpoint_is_a_fault_of_the_event_that_requires_it(n: int) -> None:
    assert outcome(NOTES[:n] + NOTES[n + 1 :]) == ("heads", SIZES[n])


def test_the_last_checkpoint_covers_the_log() -> None:
    open_table = LogBuilder().open_table().sit(1).lines()
    assert verify(open_table).ok
    fault = verify(open_table[:-1]).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("heads", 2)
    fault = verify([*open_table[:-1], bundle.checkpoint(head(1))]).fault
    assert fault is not None


@pytest.mark.parametrize("n", range(1, 4))
def test_checkpoints_are_ordered_by_size(n: int) -> None:
    assert outcome([*NOTES[:n], NOTES[n - 1], *NOTES[n:]]) == ("heads", FIRST + n)
    assert outcome([*NOTES[:n], head(0), *NOTES[n:]]) == ("heads", FIRST + n)


@pytest.mark.parametrize(
    "note",
    [
        head(SIZES[0], over=SIZES[0] - 1),
        head(SIZES[0], over=SIZES[1]),
        head(len(LEAVES) + 1),
        head(SIZES[0], origin=ORIGIN.replace("cards", "carts")),
        head(SIZES[0], origin=ORIGIN.replace("/t/", "/t/0")),
        head(SIZES[0], signer=Signer(some_bytes("another"))),
        NOTES[0].replace("\n\n", "\n"),
        NOTES[0].partition("\n\n")[0],
        "",
        "\n",
        cosignature(NOTES[0], ADA, b"bad"),
        cosignature(NOTES[0], ADA, bytes(72)),
        NOTES[0] + ADA.cosign(NOTES[0], time=1) + ADA.cosign(NOTES[0], time=2),
        NOTES[0] + ADA.cosign(NOTES[1], time=1),
        NOTES[0] + NOTES[0].splitlines()[-1] + "\n",
    ],
)
def test_invalid_heads(note: str) -> None:
    assert outcome(with_first(lambda _: note)) == ("heads", FIRST)


def test_a_head_of_a_longer_log_is_a_fault() -> None:
    longer = head(len(LEAVES) + 1, over=len(LEAVES))
    assert outcome([*NOTES, longer]) == ("heads", FIRST + len(NOTES))


def test_cosignatures_are_counted_by_player() -> None:
    lines = [NOTES[0] + ADA.cosign(NOTES[0], time=1)]
    log = LINES[:FIRST] + [bundle.checkpoint(note) for note in lines + NOTES[1:]]
    report = verify(log)
    assert report.ok
    assert report.cosigners == {ADA.public_key.hex(): 1}
    assert report.cosigned_upto == {ADA.public_key.hex(): read_checkpoint(NOTES[0]).size}
    assert report.names == {ADA.public_key.hex(): "Ada"}
    assert (
        f"Cosigned by Ada 1 time, last at size {read_checkpoint(NOTES[0]).size}, under the key "
        f"{ADA.public_key.hex()}." in report.verdicts()
    )


def test_cosignatures_by_unknown_keys_are_not_counted() -> None:
    unknown = Cosigner(some_bytes("stranger"))
    for line in (unknown.cosign(NOTES[0], time=1), cosignature("", unknown, b"bad")):
        report = verify([*LINES[:FIRST], bundle.checkpoint(NOTES[0] + line), *LINES[FIRST + 1 :]])
        assert report.ok
        assert report.cosigners == {}


@pytest.mark.parametrize("log", vectors("heads"), ids=ids)
def test_vectors_of_notes(log: dict[str, Any]) -> None:
    given = log["in"]
    *leaves, last = given["lines"]
    for note in log["out"]:
        in_bundle = verify([*leaves, bundle.checkpoint(note["note"]), last], key=given["key"])
        saved = verify(given["lines"], key=given["key"], saved=[note["note"]])
        for report, wanted in ((in_bundle, note["in_bundle"]), (saved, note["saved"])):
            fault = report.fault
            assert (fault and [fault.check, fault.line]) == wanted, note["name"]


@pytest.mark.parametrize("member", ["key", "origin"])
def test_the_first_event_names_the_key_and_the_origin(member: str) -> None:
    log = complete_log()
    other = {"key": "0" * 64, "origin": ORIGIN.replace("cards", "carts")}[member]
    log.leaves[0]["public"][member] = other
    fault = verify(log.lines(), key=HOUSE.public_key).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("heads", 1)


def test_only_checkpoints_follow_a_checkpoint() -> None:
    leaf = LINES[FIRST - 1].replace(f'"version":{FIRST - 1}', f'"version":{FIRST + 1}')
    fault = verify([*LINES[: FIRST + 1], leaf]).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", FIRST + 1)


@pytest.mark.parametrize("note", ["7", '["a"]', '{"a":1}', "true"])
def test_a_checkpoint_is_text(note: str) -> None:
    fault = verify([*LINES[:FIRST], f'{{"checkpoint":{note}}}']).fault
    assert fault is not None
    assert (fault.check, fault.line) == ("form", FIRST)
