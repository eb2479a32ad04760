"""Spans of requests, commits and projections: which there are, and what is not in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dealer.errors import CardNotInHand, ConfigurationError
from dealer.gateway.observe.tracing import COMMIT, SLICE, recording, tracing
from dealer.gateway.server import Gateway
from tests.gateway.rpc_client import Refusal
from tests.gateway.tables import seat_and_shuffle

NAMES = {
    "rpc.system.name", "rpc.method", "rpc.response.status_code", "jsonrpc.protocol.version",
    "error.type",
}  # fmt: skip
"""Of OpenTelemetry's conventions, stable since their version 1.45."""


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    yield exporter
    exporter.clear()


async def test_requests_commits_and_slices_have_spans_without_data_of_players(
    open_node, connect, exporter: InMemorySpanExporter
) -> None:
    gateway: Gateway = await open_node()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = gateway.context.service
    with recording(provider, service, gateway.metrics):
        table = await seat_and_shuffle(connect, gateway, players=1)
        card = (await table.players[0].call("deck.draw"))["cards"][0]
        with pytest.raises(Refusal):
            await table.players[0].call("hand.play", cards=["X1"])
        assert service.projection is not None
        await service.projection.up_to_date()
    spans: Any = exporter.get_finished_spans()
    outcomes = {(span.name, span.attributes.get("error.type")) for span in spans}
    assert {("deck.draw", None), ("hand.play", CardNotInHand.reason), (COMMIT, None)} <= outcomes
    assert (SLICE, None) in outcomes
    (refused,) = (span for span in spans if span.name == "hand.play")
    assert refused.status.status_code is StatusCode.ERROR
    assert dict(refused.attributes) == {
        "rpc.system.name": "jsonrpc",
        "rpc.method": "hand.play",
        "rpc.response.status_code": str(CardNotInHand.code),
        "jsonrpc.protocol.version": "2.0",
        "error.type": CardNotInHand.reason,
    }
    (draw,) = (span for span in spans if span.name == "deck.draw")
    assert draw.start_time < draw.end_time < draw.start_time + 60e9
    assert all(span.parent is None for span in spans)
    assert {name for span in spans for name in span.attributes} <= NAMES
    text = "".join(span.to_json() for span in spans)
    for secret in (table.id, card, "player"):
        assert f'"{secret}' not in text
    await table.players[0].call("ping")
    assert exporter.get_finished_spans() == spans, "recorded after its end"


@pytest.mark.slow
def test_nothing_is_imported_unless_spans_are_sent() -> None:
    program = "import sys, dealer.cli.main, dealer.gateway.server, dealer.gateway.observe.tracing; "
    program += "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


async def test_missing_packages_are_named(gateway: Gateway, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    service = gateway.context.service
    with (
        pytest.raises(ConfigurationError, match=r"'\.\[otel\]'"),
        tracing("http://localhost:1/v1/traces", service, gateway.metrics),
    ):
        pass
    with tracing(None, service, gateway.metrics):
        assert gateway.metrics.on_answer is None
