"""Metrics of the server, in the format of Prometheus; none is labelled by table or by player.

The hot path only adds to plain numbers, which become metrics when they are scraped: an observation
of prometheus_client takes 3.6 times as long as one of `Histogram`, a labelled count 7 times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dealer.service.commit_stats import BATCHES, CommitStats

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SIZES = (1, 2, 5, 10, 20, 60, 120, 500, 1000)


class Histogram:
    """Counts of values by bucket; `bounds` are the upper bounds, with one more bucket above."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus expects them."""
        sums, so_far = [], 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            so_far += count
            sums.append((str(bound), float(so_far)))
        return sums


class Metrics(Collector):
    """Counters and histograms; `gauges` are read on each scrape: name → (help, read)."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.push_seconds = Histogram(SECONDS)
        self.appended = Histogram(tuple(map(float, SIZES)))
        self.lag = Histogram(SECONDS)
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        self.resumes = 0
        self.resets = 0
        self.slowed = 0
        self.closed: Counter[int] = Counter()
        self.counts = CommitStats()
        self.ready = False
        self.projector_lag = (0, 0)  # events not in the read models yet, and their tables
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def page(self) -> bytes:
        """The exposition text that Prometheus scrapes."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        yield from self._histograms()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "dealer_calls", "Requests by method and outcome.", labels=("method", "outcome")
        )
        for labels, count in self.calls.items():
            calls.add_metric(labels, count)
        yield calls
        for name, help, label, kinds in (
            ("dealer_connections_closed", "Connections closed by the server.", "code", self.closed),
            ("dealer_connections_refused", "Connections refused.", "reason", self.refused),
            ("dealer_appends", "Appends by outcome.", "outcome", self.counts.appends),
            (
                "dealer_tables_closed",
                "Unused tables closed by the server.",
                "why",
                self.counts.closed,
            ),
        ):
            family = CounterMetricFamily(name, help, labels=(label,))
            for kind, count in sorted(kinds.items(), key=str):
                family.add_metric((str(kind),), count)
            yield family
        for name, help, value in (
            ("dealer_connections_accepted", "WebSocket connections so far.", self.accepted),
            ("dealer_resumes", "Resumed tables.", self.resumes),
            ("dealer_resets", "Snapshots sent instead of events.", self.resets),
            (
                "dealer_slow_consumers",
                "Times that a client read too slowly to stay live.",
                self.slowed,
            ),
        ):
            yield CounterMetricFamily(name, help, value=value)

    def _histograms(self) -> Iterator[Metric]:
        batches = Histogram(tuple(map(float, BATCHES)))
        batches.counts, batches.total = list(self.counts.batches), float(self.counts.requests)
        for name, help, histogram in (
            (
                "dealer_commit_to_send_seconds",
                "From a commit to its last frame.",
                self.push_seconds,
            ),
            ("dealer_append_events", "Events per append.", self.appended),
            ("dealer_batch_appends", "Appends per commit.", batches),
            ("dealer_loop_lag_seconds", "Delay of timers of the event loop.", self.lag),
        ):
            yield HistogramMetricFamily(
                name, help, buckets=histogram.buckets(), sum_value=histogram.total
            )

    def _gauges(self) -> Iterator[Metric]:
        events, tables = self.projector_lag
        for name, help, value in (
            ("dealer_ready", "1 if /readyz was ready at its last answer.", float(self.ready)),
            ("dealer_projector_lag_events", "Events not in the read models yet.", events),
            ("dealer_projector_lag_tables", "Tables with such events.", tables),
        ):
            yield GaugeMetricFamily(name, help, value=value)
        for name, (help, read) in self.gauges.items():
            yield GaugeMetricFamily(name, help, value=float(read()))
