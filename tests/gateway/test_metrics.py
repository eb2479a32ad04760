"""Metrics: their values and labels, which identify no table and no player."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from dealer.eventlog.address import is_postgres
from dealer.eventlog.protocols import Connection
from dealer.gateway import Gateway
from dealer.gateway.session.methods import METHODS
from dealer.histogram import Histogram
from dealer.service.build import open_service
from tests.gateway.conftest import Connect, serving
from tests.gateway.http_client import get
from tests.gateway.rpc_client import Refusal, eventually
from tests.gateway.tables import seat_and_shuffle


async def test_metrics_have_these_values_and_no_other_labels(tmp_path, connect) -> None:
    async with serving(open_service(f"sqlite:///{tmp_path / 'counted.db'}"), ops_port=0) as gateway:
        table = await seat_and_shuffle(connect, gateway, players=2)
        await table.players[0].call("deck.draw")
        with pytest.raises(InvalidStatus):
            await connect(gateway, additional_headers={"Origin": "https://elsewhere.example"})
        page = (await get(gateway.ops_port, "/metrics")).text
        for line in (
            'dealer_appends_total{outcome="written"} 6.0',
            'dealer_connections_refused_total{reason="origin"} 1.0',
            "dealer_batch_appends_sum 6.0",
            "dealer_ready 1.0",
            "dealer_draining 0.0",
            "dealer_database_trouble 0.0",
            "dealer_appends_waiting 0.0",
        ):
            assert line in page
        assert re.search(r"^dealer_commits_on_loop [01]\.0$", page, re.MULTILINE)
        assert re.search(r"^dealer_projector_lag_events \d", page, re.MULTILINE)
        assert "dealer_loop_lag_seconds_count" in page
        labels = set(re.findall(r"[{,](\w+)=", page))
        build = {"version", "python", "database"}
        assert labels == build | {"method", "outcome", "code", "reason", "le"} - (
            set() if "code=" in page else {"code"}
        )
        allowed = {*METHODS, "unreadable"}
        assert set(re.findall(r'method="([^"]*)"', page)) <= allowed
        for secret in (table.id, "player 1", *table.tokens, table.host_token):
            assert secret not in page


def samples(page: str) -> dict[str, float]:
    """The value of each sample, by its name with its labels."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_times_are_observed_once_for_each_request_commit_and_load(tmp_path, connect) -> None:
    async with serving(open_service(f"sqlite:///{tmp_path / 'timed.db'}"), ops_port=0) as gateway:
        table = await seat_and_shuffle(connect, gateway, players=2)
        await table.players[0].call("deck.draw")
        with pytest.raises(Refusal):
            await table.players[0].call("deck.draw", count=99)
        projection = gateway.context.service.projection
        assert projection is not None
        await projection.up_to_date()
        await gateway.probe.check()
        found = samples((await get(gateway.ops_port, "/metrics")).text)
    assert found['dealer_request_seconds_count{method="deck.draw"}'] == 2
    assert found['dealer_request_seconds_count{method="table.join"}'] == 2
    assert found["dealer_commit_seconds_count"] == found["dealer_batch_appends_count"] == 6
    assert found["dealer_table_load_seconds_count"] == 1
    assert found["dealer_projector_slice_seconds_count"] > 0
    for name in ("request", "commit", "table_load", "projector_slice"):
        sums = [value for key, value in found.items() if key.startswith(f"dealer_{name}_seconds_s")]
        assert sums
        assert all(0 < value < 60 for value in sums)
    assert found["dealer_projector_lag_seconds"] == found["dealer_projector_lag_events"] == 0


async def test_a_table_whose_read_models_stop_is_named_while_the_server_stays_ready(
    tmp_path: Path, connect: Connect
) -> None:
    async with serving(open_service(f"sqlite:///{tmp_path / 'log.db'}"), ops_port=0) as gateway:
        service, client = gateway.context.service, await connect(gateway)
        table = (await client.call("table.open"))["table"]
        projection = service.projection
        assert projection is not None
        await projection.up_to_date()
        await service.log.run_in_transaction(append_unreadable)
        await projection.up_to_date()
        ready, found = await ready_and_metrics(gateway)
        (line,) = ready
        assert line.startswith(f"table {table}: the read models stopped at version 1. Version 2 ")
        assert found["dealer_projector_stopped_tables"] == 1
        assert found["dealer_projector_lag_seconds"] > 0
        # As `dealer rebuild` or another node would.
        await service.log.run_in_transaction(set_projected)
        projection.projector.poll()
        await projection.up_to_date()
        ready, found = await ready_and_metrics(gateway)
        assert ready == []
        assert found["dealer_projector_stopped_tables"] == 0
        assert found["dealer_projector_lag_seconds"] == 0


def append_unreadable(connection: Connection) -> None:
    connection.exec_driver_sql(
        "INSERT INTO event (stream, version, type, schema, at, public)"
        " SELECT id, 2, 'SeatLeft', 1, 0, '?' FROM stream"
    )
    connection.exec_driver_sql("UPDATE stream SET version = 2")


def set_projected(connection: Connection) -> None:
    connection.exec_driver_sql("UPDATE stream SET projected = version")


async def ready_and_metrics(gateway: Gateway) -> tuple[list[str], dict[str, float]]:
    """The remarks of `/readyz`, which answers 200, and the samples of `/metrics`."""
    ready = await get(gateway.ops_port, "/readyz")
    assert ready.status == 200
    return ready.text.splitlines()[2:], samples((await get(gateway.ops_port, "/metrics")).text)


async def test_the_process_and_the_database_are_described(tmp_path, connect) -> None:
    async with serving(
        open_service(f"sqlite:///{tmp_path / 'log.db'}", readers=3, wal_pages=100), ops_port=0
    ) as gateway:
        page = (await get(gateway.ops_port, "/metrics")).text
        found = samples(page)
    assert re.search(r'dealer_build_info\{database="sqlite",python="3.*",version=".+"\} 1', page)
    assert found["dealer_wal_bytes"] >= 100 * 4096
    assert found["dealer_readers"] == 3
    assert found["dealer_readers_busy"] <= 3  # the server reads on its own, too
    assert 0 <= found["dealer_probe_age_seconds"] < 60
    for name in (
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_start_time_seconds",
    ):
        assert found[name] > 0


@pytest.mark.slow
async def test_busy_readers_are_counted(tmp_path) -> None:
    async with open_service(f"sqlite:///{tmp_path / 'read.db'}", readers=3) as service:
        slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
        reads = [
            asyncio.create_task(service.log.fetch(f"{slow} SELECT max(i) FROM n".format(2_000_000)))
            for _ in range(2)
        ]
        await eventually(lambda: service.log.reader.pool.busy == 2)
        await asyncio.gather(*reads)
        await eventually(lambda: service.log.reader.pool == (0, 3))


async def test_hints_between_nodes_are_counted(open_node, connect, url) -> None:
    one, other = await open_node(), await open_node()
    table = await seat_and_shuffle(connect, one, players=1)
    watching = await connect(other)
    await watching.call("table.watch", table=table.id)
    sent, received = "dealer_hints_sent", "dealer_hints_received"
    if not is_postgres(url):
        assert one.metrics.counters[sent][1]() == other.metrics.counters[received][1]() == 0
        return
    await table.players[0].call("deck.draw")
    await eventually(lambda: one.metrics.counters[sent][1]() > 0)
    await eventually(lambda: other.metrics.counters[received][1]() > 0)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)  # an SQLite file has no hints
async def test_a_table_of_one_node_causes_no_hints(open_node, connect, url) -> None:
    one = await open_node()
    table = await seat_and_shuffle(connect, one, players=1)
    presence, sent = one.context.service.presence, one.metrics.counters["dealer_hints_sent"][1]
    (live_table,) = one.context.service.tables
    await eventually(lambda: presence.alone(live_table.id))
    other = await open_node()
    before = sent()
    for _ in range(5):
        await table.players[0].call("deck.draw")
    watching = await connect(other)
    await watching.call("table.watch", table=table.id)
    await eventually(lambda: not presence.alone(live_table.id))
    assert sent() == before
    await table.players[0].call("deck.draw")
    await eventually(lambda: sent() == before + 1)


def test_an_observation_goes_to_the_bucket_of_its_upper_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 3.0):
        histogram.observe(value)
    assert histogram.buckets() == [("1.0", 2.0), ("2.0", 3.0), ("+Inf", 4.0)]
    assert histogram.total == 6.0
