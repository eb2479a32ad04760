"""A person is forgotten: what a bundle withholds is named, and all else is verified as before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dealer.proof.canonical import decode, encode
from dealer.proof.tombstones import FORGOTTEN, forget, read_leaf
from dealer.proof.verify import verify
from tests.proof.log_builder import LogBuilder

STONES = {2: ("SeatTaken", 1), 4: ("NoteAdded", 1), 5: ("NoteAdded", 2), 7: ("NoteAdded", 0)}
Change = Callable[[dict[str, Any]], object]


def played() -> LogBuilder:
    """Ann and Bob, with notes by and about Ann; only Bob's note of version 6 is his alone."""
    log = LogBuilder().open_table().sit(1, "Ann", keyed=True).sit(2, "Bob", keyed=True)
    log.note(1, text="good evening").note(2, text="ANN is late").note(2, text="Annabel is here")
    log.note(0, "ann", "sits here").open_round(entropy="players")
    log.shuffle(seats=[1, 2], cosign=[1, 2]).draw(1).close_round()
    return log.vacate(1, reason="Ann slept").sit(1, "Cleo").note(1, text="hello").close_table()


def whole() -> list[bytes]:
    return [line.encode() for line in played().lines()]


LEFT = next(leaf["version"] for leaf in played().leaves if leaf["type"] == "SeatVacated")


def withheld() -> list[str]:
    """The bundle of `played` without Ann."""
    return [line.decode() for line in forget(whole(), "Ann").lines]


def test_the_name_is_gone_and_all_else_is_verified() -> None:
    before, found = verify(whole()), forget(whole(), "Ann")
    report = verify(found.lines)
    assert before.ok
    assert report.ok
    assert found.standing == {}
    assert found.versions == [stone.version for stone in report.tombstones] == [*STONES, LEFT]
    assert {one.version: (one.type, one.seat) for one in report.tombstones} == STONES | {
        LEFT: ("SeatVacated", 1)
    }
    text = b"\n".join(found.lines).decode()
    assert "Annabel" in text
    assert "ann" not in text.casefold().replace("annabel", "")
    assert played().cosigner(1).public_key.hex() not in text
    assert report.remarks == replace(before.remarks, cosigned=before.remarks.cosigned - 1)
    assert [*report.names.values()] == ["Bob"]
    (sentence,) = (line for line in report.lines() if line.startswith("Withheld leaves: 5."))
    assert "version 2, who took seat 1; version 4, a note of seat 1; " in sentence
    assert f"version {LEFT}, why seat 1 was vacated." in sentence
    assert "a note of the host or a service" in sentence


def test_a_seat_stands_for_all_who_took_it() -> None:
    found = forget(whole(), "1")
    assert found.versions == [*STONES, LEFT, LEFT + 1, LEFT + 2]
    assert verify(found.lines).ok
    assert "Cleo" not in b"".join(found.lines).decode()


def test_one_key_is_one_person() -> None:
    """Ann came back under another name with the same key."""
    log = LogBuilder().open_table().sit(1, "Ann", keyed=True).append("SeatLeft", seat=1)
    lines = [line.encode() for line in log.sit(1, "Queen", keyed=True).close_table().lines()]
    assert forget(lines, "Ann").versions == [2, 4]


def test_a_second_run_keeps_the_first_tombstones() -> None:
    once = forget(whole(), "Ann").lines
    again = forget(once, "Bob")
    assert again.versions == [3, 6]
    report = verify(again.lines)
    assert report.ok
    assert len(report.tombstones) == len(STONES) + 3


def test_a_name_or_seat_that_is_not_there_changes_nothing() -> None:
    for name in ("Dora", "ann", "3", "01", ""):
        assert forget(whole(), name) == (whole(), [], {})


def test_a_name_that_stays_is_listed() -> None:
    log = LogBuilder().open_table(name="Ann's table").sit(1, "Ann").close_table()
    found = forget([line.encode() for line in log.lines()], "Ann")
    assert found.standing == {"TableOpened.rules.name": [1]}


def test_a_name_is_found_as_another_keyboard_composes_it() -> None:
    log = LogBuilder().open_table().sit(1, "Zoe\u0308").close_table()
    assert forget([line.encode() for line in log.lines()], "Zo\u00eb").versions == [2]


def test_readers_get_a_leaf_without_the_name() -> None:
    lines = forget(whole(), "Ann").lines
    assert read_leaf(lines[3])["public"]["name"] == "Bob"
    leaf = read_leaf(lines[2])
    assert (leaf["version"], leaf["v"], leaf["type"]) == (2, 1, "SeatTaken")
    assert leaf["public"] == {"seat": 1, "name": FORGOTTEN}


def other(name: str, value: object) -> Change:
    return lambda stone: stone.update({name: value})


FORGED: list[tuple[str, int, Change, str, int]] = [
    ("another hash", 4, other("hash", "0" * 64), "heads", 0),
    ("a hash that is none", 4, other("hash", "0" * 63), "form", 4),
    ("no hash", 4, lambda stone: stone.pop("hash"), "form", 4),
    ("another version", 4, other("version", 5), "form", 4),
    ("a time before", 4, other("at", 1), "form", 4),
    ("an unknown type", 4, other("type", "Nothing"), "form", 4),
    ("a type that has no name", 4, other("type", "SeatLeft"), "form", 4),
    ("a member of a leaf", 4, other("v", 1), "form", 4),
    ("a name", 2, lambda stone: stone["public"].update(name="Ann"), "form", 2),
    ("no seat", 2, lambda stone: stone["public"].pop("seat"), "form", 2),
    ("no public part", 2, other("public", []), "form", 2),
    ("another seat, which is taken later", 2, other("public", {"seat": 2}), "moves", 3),
    ("a free seat", 4, other("public", {"seat": 9}), "moves", 4),
    ("a note where a seat is taken", 2, other("type", "NoteAdded"), "moves", 2),
    ("a free seat vacated", LEFT, other("public", {"by": "host", "seat": 5}), "moves", LEFT),
]  # fmt: skip
"""Name, version of the tombstone, its change, and the check and the line (0: the first note)."""


def forged(version: int, change: Change) -> list[str]:
    lines = withheld()
    members = decode(lines[version])
    change(members["tombstone"])
    lines[version] = encode(members).decode()
    return lines


def first_note() -> int:
    return next(n for n, line in enumerate(withheld()) if line.startswith('{"checkpoint"'))


def misplaced() -> list[tuple[str, list[str], str, int]]:
    """Name, lines, check and line of bundles with a tombstone in a wrong place or form."""
    lines, stone = withheld(), withheld()[2]
    note = first_note()
    first = encode({"tombstone": decode(stone)["tombstone"] | {"version": 1}}).decode()
    return [
        ("in place of TableOpened", [lines[0], first, *lines[2:]], "form", 1),
        ("after a checkpoint", [*lines[: note + 1], stone], "form", note + 1),
        ("no object", [*lines[:2], '{"tombstone":7}', *lines[3:]], "form", 2),
        ("two members", [*lines[:2], '{"a":1,"tombstone":{}}', *lines[3:]], "form", 2),
        ("the last one dropped", [*lines[:LEFT], *lines[LEFT + 1 :]], "form", LEFT),
    ]


@pytest.mark.parametrize(("name", "version", "change", "check", "line"), FORGED)
def test_a_forged_tombstone_is_a_fault(
    name: str, version: int, change: Change, check: str, line: int
) -> None:
    fault = verify(forged(version, change)).fault
    assert fault is not None, name
    assert (fault.check, fault.line) == (check, line or first_note())


def test_a_misplaced_tombstone_is_a_fault() -> None:
    for name, lines, check, line in misplaced():
        fault = verify(lines).fault
        assert fault is not None, name
        assert (fault.check, fault.line) == (check, line), name
