"""The page of metrics in the format of Prometheus, made of the plain numbers of `Metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE_LATEST
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dealer.gateway.observe.metrics import Metrics
from dealer.histogram import Histogram
from dealer.service.commands.commit_stats import BATCHES


def exposition(metrics: Metrics) -> bytes:
    """The text that Prometheus scrapes."""
    registry = CollectorRegistry()
    registry.register(MetricsCollector(metrics))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class MetricsCollector(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._of = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        yield from self._histograms()
        yield from self._gauges()

    def _counters(self) -> Iterator[Metric]:
        of = self._of
        calls = CounterMetricFamily(
            "dealer_calls", "Requests by method and outcome.", labels=("method", "outcome")
        )
        for labels, count in of.calls.items():
            calls.add_metric(labels, count)
        yield calls
        for name, help, label, kinds in (
            ("dealer_connections_closed", "Connections closed by the server.", "code", of.closed),
            ("dealer_connections_refused", "Connections refused.", "reason", of.refused),
            ("dealer_posts", "Requests with POST /rpc by HTTP status.", "status", of.posts),
            ("dealer_appends", "Appends by outcome.", "outcome", of.counts.appends),
            (
                "dealer_tables_closed",
                "Unused tables closed by the server.",
                "why",
                of.counts.closed,
            ),
        ):
            family = CounterMetricFamily(name, help, labels=(label,))
            for kind, count in sorted(kinds.items(), key=str):
                family.add_metric((str(kind),), count)
            yield family
        for name, help, value in (
            ("dealer_connections_accepted", "WebSocket connections so far.", of.accepted),
            ("dealer_resumes", "Resumed tables.", of.resumes),
            ("dealer_resets", "Snapshots sent instead of events.", of.resets),
            (
                "dealer_slow_consumers",
                "Times that a client read too slowly to stay live.",
                of.slowed,
            ),
        ):
            yield CounterMetricFamily(name, help, value=value)
        for name, (help, read) in of.counters.items():
            yield CounterMetricFamily(name, help, value=read())

    def _histograms(self) -> Iterator[Metric]:
        counts, batches = self._of.counts, Histogram(tuple(map(float, BATCHES)))
        batches.counts, batches.total = list(counts.batches), float(counts.requests)
        own: dict[str, tuple[str, Histogram]] = {
            "dealer_append_events": ("Events per append.", counts.events),
            "dealer_batch_appends": ("Appends per commit.", batches),
            "dealer_loop_lag_seconds": ("Delay of timers of the event loop.", self._of.lag),
        }
        read = {name: (help, read()) for name, (help, read) in self._of.histograms.items()}
        for name, (help, histogram) in (own | read).items():
            yield HistogramMetricFamily(
                name, help, buckets=histogram.buckets(), sum_value=histogram.total
            )
        requests = HistogramMetricFamily(
            "dealer_request_seconds",
            "From a request to its answer, by method.",
            labels=("method",),
        )
        for method, histogram in sorted(self._of.request_seconds.items()):
            requests.add_metric((method,), histogram.buckets(), histogram.total)
        yield requests

    def _gauges(self) -> Iterator[Metric]:
        build = GaugeMetricFamily(
            "dealer_build_info", "Always 1; the labels say what runs.", labels=tuple(self._of.build)
        )
        build.add_metric(tuple(self._of.build.values()), 1.0)
        yield build
        for name, (help, read) in self._of.gauges.items():
            yield GaugeMetricFamily(name, help, value=float(read()))
