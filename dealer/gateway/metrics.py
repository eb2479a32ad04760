"""What the house counts about its own work; never by table, never by player.

The hot path only adds to numbers here. They become Prometheus metrics when somebody asks.
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

from dealer.service.counts import BATCHES, Counts

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SIZES = (1, 2, 5, 10, 20, 60, 120, 500, 1000)


class Histogram:
    """Counts values in buckets with these upper bounds, and one more above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated, as Prometheus wants them."""
        sums, so_far = [], 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            so_far += count
            sums.append((str(bound), float(so_far)))
        return sums


class Metrics(Collector):
    """`gauges` are asked when somebody collects: name → (what it says, its value now)."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.told = Histogram(SECONDS)
        self.appended = Histogram(tuple(map(float, SIZES)))
        self.lag = Histogram(SECONDS)
        self.accepted = 0
        self.turned_away: Counter[str] = Counter()
        self.resumes = 0
        self.resets = 0
        self.slowed = 0
        self.dropped: Counter[int] = Counter()
        self.counts = Counts()
        self.ready = False
        self.behind = (0, 0)  # events that are not in the read models yet, and of how many tables
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def page(self) -> bytes:
        """The text that Prometheus scrapes."""
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
        for name, says, label, kinds in (
            ("dealer_connections_closed", "Connections closed by the house.", "code", self.dropped),
            ("dealer_connections_refused", "Connections turned away.", "reason", self.turned_away),
            ("dealer_appends", "Appends by outcome.", "outcome", self.counts.appends),
            ("dealer_tables_closed", "Tables closed for want of use.", "why", self.counts.closed),
        ):
            family = CounterMetricFamily(name, says, labels=(label,))
            for kind, count in sorted(kinds.items(), key=str):
                family.add_metric((str(kind),), count)
            yield family
        for name, says, value in (
            ("dealer_connections_accepted", "WebSocket connections so far.", self.accepted),
            ("dealer_resumes", "Tables that were taken up again.", self.resumes),
            ("dealer_resets", "Snapshots in the place of events.", self.resets),
            ("dealer_slow_consumers", "Times that a reader fell behind.", self.slowed),
        ):
            yield CounterMetricFamily(name, says, value=value)

    def _histograms(self) -> Iterator[Metric]:
        batches = Histogram(tuple(map(float, BATCHES)))
        batches.counts, batches.total = list(self.counts.batches), float(self.counts.requests)
        for name, says, histogram in (
            ("dealer_commit_to_send_seconds", "From a commit to its last frame.", self.told),
            ("dealer_append_events", "Events an append.", self.appended),
            ("dealer_batch_appends", "Appends a commit.", batches),
            ("dealer_loop_lag_seconds", "How late the loop's timers ring.", self.lag),
        ):
            yield HistogramMetricFamily(
                name, says, buckets=histogram.buckets(), sum_value=histogram.total
            )

    def _gauges(self) -> Iterator[Metric]:
        events, tables = self.behind
        for name, says, value in (
            ("dealer_ready", "1 if /readyz said so just now.", float(self.ready)),
            ("dealer_projector_lag_events", "Events not in the read models yet.", events),
            ("dealer_projector_lag_tables", "Tables that these belong to.", tables),
        ):
            yield GaugeMetricFamily(name, says, value=value)
        for name, (says, ask) in self.gauges.items():
            yield GaugeMetricFamily(name, says, value=float(ask()))
