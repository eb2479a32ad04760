"""The shuffles of a table, from its public events and the swaps that the verifier recomputed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dealer.analysis.records import LoggedEvent, LoggedShuffle
from dealer.game import events
from dealer.proof.verify import Swap

ShuffleId = tuple[int, int]
"""A round and the number of a shuffle in it."""


def shuffles_of(logged: Iterable[LoggedEvent], swaps: Iterable[Swap]) -> list[LoggedShuffle]:
    """All shuffles of a table in order, from all of its events."""
    found: dict[ShuffleId, LoggedShuffle] = {}
    committed: dict[ShuffleId, list[int]] = defaultdict(list)
    revealed: dict[ShuffleId, list[int]] = defaultdict(list)
    steps: dict[ShuffleId, list[Swap]] = defaultdict(list)
    for swap in swaps:
        steps[swap.round, swap.shuffle_index].append(swap)
    for entry in logged:
        match entry.event:
            case events.EntropyCommitted(round=round_, k=k, seat=seat):
                committed[round_, k].append(seat)
            case events.EntropyRevealed(round=round_, k=k, seat=seat):
                revealed[round_, k].append(seat)
            case events.ShuffleStarted() as event:
                found[event.round, event.k] = _started(entry, event)
            case events.DeckSealed(round=round_, k=k):
                found[round_, k] = _ended(found[round_, k], entry, "sealed")
            case events.ShuffleVoided(round=round_, k=k):
                found[round_, k] = _ended(found[round_, k], entry, "voided")
    return [
        shuffle._replace(
            committed=tuple(sorted(committed[id_])),
            revealed=tuple(sorted(revealed[id_])),
            swaps=tuple(steps[id_]),
        )
        for id_, shuffle in found.items()
    ]


def _started(entry: LoggedEvent, event: events.ShuffleStarted) -> LoggedShuffle:
    return LoggedShuffle(
        table=entry.table,
        round=event.round,
        k=event.k,
        stack=event.stack,
        n=event.n,
        algorithm=event.algorithm,
        steps=event.steps,
        started=entry.version,
        started_at=entry.at,
    )


def _ended(shuffle: LoggedShuffle, entry: LoggedEvent, outcome: str) -> LoggedShuffle:
    return shuffle._replace(ended=entry.version, ended_at=entry.at, outcome=outcome)
