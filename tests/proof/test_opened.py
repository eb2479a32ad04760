"""Opened parts: what people write can be withheld at a closed table, and nothing else can."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from dealer.client.event_verifier import EventVerifier
from dealer.errors import HouseCheated, ProofFault, UnknownEvent
from dealer.proof.canonical import encode
from dealer.proof.opened import opened_commitment
from dealer.proof.tree import leaf_hash
from dealer.proof.verify import verify
from dealer.proof.verify.form import Leaf, check_leaf
from tests.proof.log_builder import LogBuilder, ids, sign, vectors


@pytest.mark.parametrize("vector", vectors("opening"), ids=ids)
def test_commitments(vector: dict[str, Any]) -> None:
    given = vector["in"]
    assert encode(given["part"]).decode() == vector["out"]["jcs"]
    found = opened_commitment(
        table=bytes.fromhex(given["table"]),
        version=given["version"],
        salt=bytes.fromhex(given["salt"]),
        part=given["part"],
    )
    assert found.hex() == vector["out"]["commit"]


BUNDLES: dict[str, Any] = vectors("opened_bundles")[0]


@pytest.mark.parametrize("case", BUNDLES["out"], ids=ids)
def test_bundles(case: dict[str, Any]) -> None:
    """A number in `lines` is that of a line of the whole bundle."""
    whole = BUNDLES["in"]["lines"]
    lines = [whole[line] if type(line) is int else line for line in case["lines"]]
    report = verify(lines, key=BUNDLES["in"]["key"])
    fault = report.fault
    assert (fault and [fault.check, fault.line]) == case["fault"], fault
    assert report.withheld_parts == case["withheld_parts"]
    assert report.withheld_cosigners == case["withheld_cosigners"]
    said = f"Names or texts withheld: {len(report.withheld_parts)} "
    if report.ok:
        assert any(said in line for line in report.lines()) == bool(report.withheld_parts)


FRAMES: dict[str, Any] = vectors("opened_frames")[0]


@pytest.mark.parametrize("case", FRAMES["out"], ids=ids)
def test_frames(case: dict[str, Any]) -> None:
    """The frame comes after so many of those before it."""
    given = FRAMES["in"]
    client = EventVerifier(given["table"], key=bytes.fromhex(given["key"]))
    for frame in given["frames"][: case["after"]]:
        client.event(frame)
    if case["ok"]:
        assert client.event(case["frame"]) is not None
    else:
        with pytest.raises((HouseCheated, UnknownEvent)):
            client.event(case["frame"])


@pytest.mark.parametrize("case", vectors("opened_feed")[0]["out"], ids=ids)
def test_objects_of_the_feed(case: dict[str, Any]) -> None:
    """What a follower does with the two members `event` and `opened`."""
    event, opened = case["object"]["event"], case["object"].get("opened")
    assert follows(event, opened) == case["ok"]


def follows(event: dict[str, Any], opened: Any) -> bool:
    try:
        check_leaf(event["version"], event, event["table"], 0)
        leaf = Leaf(
            event["version"], event["at"], event["type"], event["public"], event.get("commit"),
            leaf_hash(encode(event)),
        )  # fmt: skip
        if not leaf.has_part:
            return opened is None
        salt = bytes.fromhex(opened["salt"])
        exact = set(opened) == {"part", "salt"} and len(salt) == 32
        found = leaf.open(event["table"], opened["part"], opened["salt"])
        return exact and salt.hex() == opened["salt"] and not found.fault
    except (ProofFault, TypeError, ValueError, KeyError, AttributeError):
        return False


def cheat(log: LogBuilder) -> list[str]:
    """The bundle of a log whose last event is a cheat, closed by the house."""
    return log.close_table().lines()


def played() -> LogBuilder:
    return LogBuilder().open_table(named="Club").sit(1, "Ada").sit(2, "Bob").open_round()


CHEATS = {
    "an illegal cut": lambda: played().shuffle().cut(99).close_round(),
    "a peek by a free seat": lambda: played().shuffle().peek(6, 3).close_round(),
    "a card drawn twice": lambda: (
        played().shuffle().draw(1).append("CardDrawn", {"card": "As"}, round=1, seat=1,
                                          source="deck", slot=6).close_round()
    ),
    "a round without its end": lambda: played().shuffle().draw(1),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_is_hidden_by_what_is_withheld(name: str) -> None:
    """Whatever openings a house leaves out, or whichever leaf it replaces by its hash."""
    lines = cheat(CHEATS[name]())
    found = verify(lines).fault
    assert found is not None
    bare = [line for line in lines if not line.startswith('{"opened"')]
    again = verify(bare).fault
    assert again is not None
    assert (again.check, again.line) == (found.check, found.line)
    for number in range(1, found.line + 1):
        leaf = json.loads(lines[number])
        stone = {name: leaf[name] for name in ("at", "type", "version")}
        public = {"public": {"seat": 1}, "hash": leaf_hash(lines[number].encode()).hex()}
        hidden = encode({"tombstone": {**stone, **public}}).decode()
        fault = verify([*lines[:number], hidden, *lines[number + 1 :]]).fault
        assert fault is not None
        assert (fault.check, fault.line) == ("form", number)


def test_any_set_of_openings_may_be_withheld_and_only_they() -> None:
    log = played().shuffle().draw(1).note(1).vacate(2, reason="x").close_round().close_table()
    lines = log.lines()
    whole = verify(lines)
    assert whole.ok
    for count in range(len(log.openings) + 1):
        for left in combinations(log.openings, count):
            missing = {log.openings[version] for version in left}
            report = verify([line for line in lines if line not in missing])
            assert (report.fault, report.withheld_parts) == (None, list(left))
            assert report.remarks == whole.remarks
    for number in range(len(log.leaves) - 1):  # without the end it is an open table
        leaves = [*log.leaves[:number], *log.leaves[number + 1 :]]
        forged = sign(leaves, log.signer, log.origin, list(log.openings.values()))
        assert verify(forged).fault is not None
