"""A linearizability check: the history of calls and answers against the order of the log.

The versions of a table are the order. It must agree with real time: a command is in the log after
everything that was answered before it was sent, and once; and a conflict is only reported if the
table had changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.harness.card_truth import Leaf


@dataclass
class Call:
    """A command or a query: `called` and `answered` are ticks of one clock.

    `first` and `last` are the versions that a granted command wrote; for a query `last` is the
    version of its answer. Both are None where it was refused, for `reason`. `more` are the
    answers to the same command when it was sent again.
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


def violations(history: Sequence[Call], log: Sequence[Leaf]) -> list[str]:
    """The violations, one sentence each; `log` has the table's events from the first on."""
    granted = [calls for calls in history if calls.first is not None]
    owners: dict[int, Call] = {}
    faults = [*_places(granted, log, owners), *_not_granted(owners, log)]
    faults += _real_time(history)
    for calls in history:
        faults += _expectation(calls, owners, len(log))
        for again in calls.more:
            if again != calls.result:
                faults.append(f"{calls.cmd} was answered with {calls.result}, then with {again}")
    return faults


def _places(granted: Sequence[Call], log: Sequence[Leaf], owners: dict[int, Call]) -> Iterator[str]:
    """Each granted command is in the log at the versions of its answer, and only there."""
    for call in granted:
        assert call.first is not None
        assert call.last is not None
        for version in range(call.first, call.last + 1):
            if version in owners:
                yield f"version {version} was given to {owners[version].cmd} and to {call.cmd}"
            owners[version] = call
        events = log[call.first - 1 : call.last]
        slots = call.result.get("slots") or call.params["cards"]
        found = [
            (event["type"], event["public"]["slot"], _seat(event["public"])) for event in events
        ]
        if found != [(KINDS[call.method], slot, call.seat) for slot in slots]:
            yield f"{call.cmd} was granted {call.first} to {call.last}, where the log has {found}"


def _seat(public: dict[str, Any]) -> int:
    return int(public["seat"] if "seat" in public else public["from"].removeprefix("hand:"))


def _not_granted(owners: dict[int, Call], log: Sequence[Leaf]) -> Iterator[str]:
    """Every command was answered, so the log has no command that was not granted."""
    for event in log:
        if event["type"] in KINDS.values() and event["version"] not in owners:
            yield f"version {event['version']} was granted to no client"


def _real_time(history: Sequence[Call]) -> Iterator[str]:
    """A version that was answered before a call began precedes that call in the log."""
    done = sorted((one for one in history if one.last is not None), key=lambda one: one.answered)
    ticks = [one.answered for one in done]
    newest, highest = [0], 0
    for one in done:
        highest = max(highest, one.last or 0)
        newest.append(highest)
    for one in done:
        before = newest[bisect_left(ticks, one.called)]
        if one.first is not None and one.first <= before:
            yield f"{one.cmd} is at {one.first}, but was sent after {before} was answered"
        if one.first is None and (one.last or 0) < before:
            yield f"{one.cmd} was answered {one.last} after {before} was answered"


def _expectation(calls: Call, owners: dict[int, Call], head: int) -> Iterator[str]:
    """`expect` refuses a command exactly when the table's version is higher."""
    if calls.first is None and calls.last is not None:
        owner = owners.get(calls.last)
        if owner is not None and owner.called >= calls.answered:
            yield f"{calls.cmd} was answered {calls.last} before that version was sent"
    if calls.expect is None:
        return
    if calls.first is not None and calls.first - 1 > calls.expect:
        yield f"{calls.cmd} was decided on {calls.expect} and is at {calls.first}"
    if calls.reason == "conflict":
        owner = owners.get(calls.expect + 1)
        later = owner is not None and owner.called >= calls.answered
        if later or calls.expect >= head:
            yield f"{calls.cmd} had a conflict, but the table was not past {calls.expect}"
