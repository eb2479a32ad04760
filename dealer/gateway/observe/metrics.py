"""Metrics of the server, in the format of Prometheus; none is labelled by table or by player.

The hot path only adds to plain numbers, which become metrics when they are scraped: an observation
of prometheus_client takes 3.6 times as long as one of `Histogram`, a labelled count 7 times.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable

from dealer.histogram import LONG_SECONDS, SECONDS, Histogram
from dealer.service.commands.commit_stats import CommitStats
from dealer.version import running_version


class Metrics:
    """Counters and histograms of one server, which uses a `database` of this kind.

    `gauges`, `counters` and `histograms` are read on each scrape: name → (help, read). `on_answer`
    is called with the arguments of `answered`.
    """

    def __init__(self, *, database: str = "") -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.request_seconds = defaultdict[str, Histogram](lambda: Histogram(LONG_SECONDS))
        self.lag = Histogram(SECONDS)
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.posts: Counter[str] = Counter()
        self.resumes = 0
        self.resets = 0
        self.slowed = 0
        self.closed: Counter[int] = Counter()
        self.counts = CommitStats()
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self.counters: dict[str, tuple[str, Callable[[], float]]] = {}
        self.histograms: dict[str, tuple[str, Callable[[], Histogram]]] = {}
        self.on_answer: Callable[[str, str, float], None] | None = None
        self.build = {
            "version": running_version(),
            "python": platform.python_version(),
            "database": database,
        }

    def answered(self, method: str, outcome: str, seconds: float) -> None:
        """Count a request that took this long; costs less than 1 µs."""
        self.calls[method, outcome] += 1
        histogram = self.request_seconds[method]  # `observe` without the call
        histogram.counts[bisect_left(LONG_SECONDS, seconds)] += 1
        histogram.total += seconds
        if self.on_answer is not None:
            self.on_answer(method, outcome, seconds)
