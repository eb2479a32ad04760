"""What everybody asked and was answered, held against the log: was there one order, and was it it?

A table's versions are that order. It has to agree with everybody's own time: a wish stands in the
log after all that was answered before it was made, and once; and who was told that the table had
moved on was told the truth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.whole.truth import Leaf


@dataclass
class Asked:
    """A wish or a question: `called` and `answered` are ticks of one clock.

    `first` and `last` are the versions of what a granted wish brought about, `last` alone is the
    version that a question was answered at; None both where it was refused, for `reason`. `more`
    are the answers to the same wish when it was sent again.
    """

    seat: int
    method: str
    cmd: str
    called: int
    params: dict[str, Any]
    expect: int | None = None
    answered: int = 0
    first: int | None = None
    last: int | None = None
    reason: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    more: list[dict[str, Any]] = field(default_factory=list)


KINDS = {"deck.draw": "CardDrawn", "hand.return": "CardMoved"}


def judge(history: Sequence[Asked], log: Sequence[Leaf]) -> list[str]:
    """What is wrong, one sentence each; `log` are the table's events from the first on."""
    wishes = [asked for asked in history if asked.first is not None]
    owners: dict[int, Asked] = {}
    faults = [*_places(wishes, log, owners), *_strangers(owners, log)]
    faults += _real_time(history)
    for asked in history:
        faults += _expectation(asked, owners, len(log))
        for again in asked.more:
            if again != asked.result:
                faults.append(f"{asked.cmd} was answered with {asked.result}, then with {again}")
    return faults


def _places(
    wishes: Sequence[Asked], log: Sequence[Leaf], owners: dict[int, Asked]
) -> Iterator[str]:
    """Each granted wish stands where its answer says, and there alone."""
    for wish in wishes:
        assert wish.first is not None
        assert wish.last is not None
        for version in range(wish.first, wish.last + 1):
            if version in owners:
                yield f"version {version} was given to {owners[version].cmd} and to {wish.cmd}"
            owners[version] = wish
        events = log[wish.first - 1 : wish.last]
        slots = wish.result.get("slots") or wish.params["cards"]
        found = [
            (event["type"], event["public"]["slot"], _seat(event["public"])) for event in events
        ]
        if found != [(KINDS[wish.method], slot, wish.seat) for slot in slots]:
            yield f"{wish.cmd} was granted at {wish.first} to {wish.last}, where {found} stands"


def _seat(public: dict[str, Any]) -> int:
    return int(public["seat"] if "seat" in public else public["from"].removeprefix("hand:"))


def _strangers(owners: dict[int, Asked], log: Sequence[Leaf]) -> Iterator[str]:
    """Every wish was answered in the end, so nothing stands there that nobody was granted."""
    for event in log:
        if event["type"] in KINDS.values() and event["version"] not in owners:
            yield f"version {event['version']} was granted to nobody"


def _real_time(history: Sequence[Asked]) -> Iterator[str]:
    """What was answered before something was asked stands before it in the log."""
    done = sorted((one for one in history if one.last is not None), key=lambda one: one.answered)
    ticks = [one.answered for one in done]
    newest, highest = [0], 0
    for one in done:
        highest = max(highest, one.last or 0)
        newest.append(highest)
    for one in done:
        before = newest[bisect_left(ticks, one.called)]
        if one.first is not None and one.first <= before:
            yield f"{one.cmd} stands at {one.first}, but was asked when {before} was known"
        if one.first is None and (one.last or 0) < before:
            yield f"{one.cmd} was told of {one.last} when {before} was known"


def _expectation(asked: Asked, owners: dict[int, Asked], head: int) -> Iterator[str]:
    """`expect` holds a wish back exactly when the table is past it."""
    if asked.first is None and asked.last is not None:
        owner = owners.get(asked.last)
        if owner is not None and owner.called >= asked.answered:
            yield f"{asked.cmd} was told of {asked.last} before anybody asked for it"
    if asked.expect is None:
        return
    if asked.first is not None and asked.first - 1 > asked.expect:
        yield f"{asked.cmd} was decided on {asked.expect} and stands at {asked.first}"
    if asked.reason == "conflict":
        owner = owners.get(asked.expect + 1)
        later = owner is not None and owner.called >= asked.answered
        if later or asked.expect >= head:
            yield f"{asked.cmd} was told that the table was past {asked.expect}, and it was not"
