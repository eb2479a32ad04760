"""Metrics of the server, in the format of Prometheus; none is labelled by table or by player.

The hot path only adds to plain numbers, which become metrics when they are scraped: an observation
of prometheus_client takes 3.6 times as long as one of `Histogram`, a labelled count 7 times.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dealer.histogram import LONG_SECONDS, SECONDS, Histogram
from dealer.service.commands.commit_stats import BATCHES, CommitStats
from dealer.version import running_version


class Metrics(Collector):
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
        self._build = {
            "version": running_version(),
            "python": platform.python_version(),
            "database": database,
        }
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def answered(self, method: str, outcome: str, seconds: float) -> None:
        """Count a request that took this long; costs less than 1 µs."""
        self.calls[method, outcome] += 1
        histogram = self.request_seconds[method]  # `observe` without the call
        histogram.counts[bisect_left(LONG_SECONDS, seconds)] += 1
        histogram.total += seconds
        if self.on_answer is not None:
            self.on_answer(method, outcome, seconds)

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
            ("dealer_posts", "Requests with POST /rpc by HTTP status.", "status", self.posts),
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
        for name, (help, read) in self.counters.items():
            yield CounterMetricFamily(name, help, value=read())

    def _histograms(self) -> Iterator[Metric]:
        batches = Histogram(tuple(map(float, BATCHES)))
        batches.counts, batches.total = list(self.counts.batches), float(self.counts.requests)
        own: dict[str, tuple[str, Histogram]] = {
            "dealer_append_events": ("Events per append.", self.counts.events),
            "dealer_batch_appends": ("Appends per commit.", batches),
            "dealer_loop_lag_seconds": ("Delay of timers of the event loop.", self.lag),
        }
        read = {name: (help, read()) for name, (help, read) in self.histograms.items()}
        for name, (help, histogram) in (own | read).items():
            yield HistogramMetricFamily(
                name, help, buckets=histogram.buckets(), sum_value=histogram.total
            )
        requests = HistogramMetricFamily(
            "dealer_request_seconds",
            "From a request to its answer, by method.",
            labels=("method",),
        )
        for method, histogram in sorted(self.request_seconds.items()):
            requests.add_metric((method,), histogram.buckets(), histogram.total)
        yield requests

    def _gauges(self) -> Iterator[Metric]:
        build = GaugeMetricFamily(
            "dealer_build_info", "Always 1; the labels say what runs.", labels=tuple(self._build)
        )
        build.add_metric(tuple(self._build.values()), 1.0)
        yield build
        for name, (help, read) in self.gauges.items():
            yield GaugeMetricFamily(name, help, value=float(read()))
