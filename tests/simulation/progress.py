"""The progress of many runs: what was found so far, how fast, and how long the rest will take."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from tests.simulation.runs import Found
from tests.simulation.shrink import kind_of
from tests.simulation.world import NOT_KEPT

EVERY_SECONDS = 30.0


class Progress:
    """Counts results, and prints failures at once and a line each half minute."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._begun = self._said = time.monotonic()
        self._spent = 0.0
        self._count = 0
        self._last = -1
        self._by_kind: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._failures: list[tuple[int, str, str]] = []
        self._not_kept = 0

    @property
    def failed(self) -> int:
        return len(self._failures)

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (time.monotonic() - self._begun) / 60

    def add(self, found: Found) -> None:
        """A seed was run."""
        self._count += 1
        self._spent += found.seconds
        self._last = max(self._last, found.seed)
        self._by_kind[found.kind] += 1
        self._seen.update(found.seen)
        self._not_kept += NOT_KEPT in found.seen
        if found.faults:
            self._kinds[kind_of(found.faults[0])] += 1
            self._failures.append((found.seed, found.kind, found.faults[0]))
            print(f"{found.kind} seed {found.seed}: " + "\n    ".join(found.faults), flush=True)
        if time.monotonic() - self._said > EVERY_SECONDS:
            self._said = time.monotonic()
            left = (self._seeds - self._count) * self.minutes / self._count
            print(
                f"{self._count} run, {self.failed} failed, {self._count / self._spent:.1f} a CPU "
                f"second, about {left:.0f} min left",
                flush=True,
            )

    def say_result(self) -> None:
        rate = self._count / max(self._spent, 1e-9)
        print(f"{self._count} schedules in {self._spent:.0f} CPU seconds: {rate:.1f} a second")
        print(f"{len(self._seen)} kinds of steps and answers, {self._seen.total()} in all")
        if self._not_kept:
            print(f"{self._not_kept} × {NOT_KEPT}")
        for kind, number in self._kinds.most_common():
            print(f"{number} × {kind}")

    def result(self) -> dict[str, Any]:
        """What a file of results keeps; `last` is the highest seed that was run."""
        return {
            "seeds": self._count,
            "last": self._last,
            "kinds": dict(self._by_kind),
            "cpu_seconds": round(self._spent, 1),
            "failures": self._failures,
            NOT_KEPT: self._not_kept,
        }
