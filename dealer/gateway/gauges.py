"""Metrics that are read from the server's parts on each scrape."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

from dealer.gateway.clients import ConnectionRegistry
from dealer.gateway.ops import Operations
from dealer.gateway.session.context import GatewayContext
from dealer.histogram import Histogram
from dealer.service import Service
from dealer.service.operations.probe import MEMORY

Number = tuple[str, Callable[[], float]]
"""The help text of a metric, and the function that reads its value."""


def gauges(
    context: GatewayContext, registry: ConnectionRegistry, operations: Operations
) -> dict[str, Number]:
    """The gauges by name."""
    service, probe = context.service, operations.probe
    log, maintenance, feed = service.log, service.maintenance, service.feed

    def backup_age() -> float:
        made_at = maintenance.backup_at
        return (service.now() - made_at) / 1000 if made_at else nan

    return {
        "dealer_connections": ("Open connections.", lambda: len(registry.connections)),
        "dealer_service_connections": (
            "Open connections with a service key.",
            lambda: sum(connection.service_key is not None for connection in registry.connections),
        ),
        "dealer_service_keys": ("Valid service keys.", lambda: len(service.service_keys)),
        "dealer_connections_max": (
            "Connections above which new ones are refused.",
            lambda: context.limits.connections,
        ),
        "dealer_addresses": (
            "Client addresses whose rate limits are kept.",
            lambda: len(context.budgets),
        ),
        "dealer_tables_resident": ("Tables in memory.", lambda: len(service.tables)),
        "dealer_tables_bytes": (
            "Estimated bytes of the tables in memory, with recent events and read models' states.",
            lambda: service.tables.used,
        ),
        "dealer_tables_bytes_max": (
            "Bytes above which idle tables leave memory.",
            lambda: service.tables.bytes_bound,
        ),
        "dealer_tables_asleep": (
            "Tables that are not in memory and whose shuffle has a deadline.",
            lambda: len(service.tables.asleep),
        ),
        "dealer_requests_in_flight": (
            "Requests that are not answered yet.",
            lambda: context.in_flight,
        ),
        "dealer_draining": ("1 while the server shuts down.", lambda: context.draining),
        "dealer_ready": (
            "1 if /readyz says that the server is ready.",
            lambda: operations.problem is None,
        ),
        "dealer_restart_needed": (
            "1 if this process opens no tables, because the house key was rotated.",
            lambda: maintenance.key_needed is not None,
        ),
        "dealer_tables_damaged": (
            "Tables whose rows in the log this process has found damaged; /readyz names them.",
            lambda: len(service.damaged),
        ),
        "dealer_probe_age_seconds": (
            "Seconds since the readiness was last checked.",
            lambda: probe.age,
        ),
        "dealer_disk_free_bytes": (
            "Free bytes of the database's disk; NaN if it is on another machine.",
            lambda: maintenance.free,
        ),
        "dealer_backup_age_seconds": (
            "Seconds since the newest `dealer backup` of the database; NaN if there is none.",
            backup_age,
        ),
        "dealer_wal_bytes": (
            "Size of the write-ahead log of an SQLite file; NaN on PostgreSQL.",
            lambda: log.reader.wal_bytes,
        ),
        "dealer_readers": ("Connections for reading, at most.", lambda: log.reader.pool.size),
        "dealer_readers_busy": ("Connections that are reading.", lambda: log.reader.pool.busy),
        "dealer_appends_waiting": (
            "Appends that wait for their commit.",
            lambda: log.writer.waiting,
        ),
        "dealer_commits_on_loop": (
            "1 while appends are committed on the event loop's thread.",
            lambda: log.writer.commits_on_loop,
        ),
        "dealer_database_trouble": (
            "1 from a batch that could not be written to the next that is.",
            lambda: service.stats.failing,
        ),
        "dealer_projector_lag_seconds": (
            "Age of this node's oldest append that is not in the read models.",
            lambda: service.projection.lag_seconds,
        ),
        "dealer_projector_stopped_tables": (
            "Tables whose read models stopped at an event; /readyz names them.",
            lambda: len(operations.stopped),
        ),
        "dealer_projector_lag_events": (
            "Events not in the read models yet, of at most 1000 tables.",
            lambda: probe.lag.events,
        ),
        "dealer_projector_lag_tables": (
            "Tables with such events, 1000 at most.",
            lambda: probe.lag.tables,
        ),
        "dealer_feed_lag_seconds": (
            "Age of this node's oldest append that is not in the feed.",
            lambda: feed.scheduler.lag_seconds,
        ),
        "dealer_feed_lag_events": (
            "Events of this node that are not in the feed yet.",
            lambda: feed.scheduler.behind_events,
        ),
        "dealer_feed_followers": (
            "Open feeds of this node, over HTTP and on WebSockets.",
            lambda: feed.head.followers,
        ),
        "dealer_webhooks_failing": (
            "Webhooks whose last request failed.",
            lambda: service.webhooks.failing,
        ),
        "dealer_webhook_lag_seconds": (
            "Age of the oldest event that a webhook of this node has not accepted.",
            lambda: service.webhooks.lag_seconds,
        ),
        "dealer_webhooks_off": (
            "Webhooks that were switched off.",
            lambda: service.webhooks.disabled,
        ),
    }


def counters(service: Service) -> dict[str, Number]:
    """The counters by name, without `_total`."""
    return {
        "dealer_memory_errors": (
            "Times that this process had no memory left.",
            lambda: MEMORY.errors,
        ),
        "dealer_webhook_deliveries": (
            "Events that webhooks accepted.",
            lambda: service.webhooks.counts.delivered,
        ),
        "dealer_webhook_failures": (
            "Requests that webhooks did not accept.",
            lambda: service.webhooks.counts.failed,
        ),
        "dealer_hints_sent": (
            "Tables in hints to other nodes.",
            lambda: service.hints.sent if service.hints else 0,
        ),
        "dealer_hints_received": (
            "Tables in hints of other nodes.",
            lambda: service.hints.received if service.hints else 0,
        ),
        "dealer_savepoints_written": (
            "Savepoints of long tables that were written.",
            lambda: service.savepoints.written,
        ),
        "dealer_savepoints_used": (
            "Tables loaded from a savepoint.",
            lambda: service.savepoints.used,
        ),
        "dealer_savepoints_refused": (
            "Savepoints that did not agree with the log.",
            lambda: service.savepoints.refused,
        ),
    }


def histograms(service: Service) -> dict[str, tuple[str, Callable[[], Histogram]]]:
    """The histograms of the service by name."""
    return {
        "dealer_commit_seconds": (
            "Time of a batch in the database, with its COMMIT.",
            lambda: service.log.writer.commit_seconds,
        ),
        "dealer_commit_to_send_seconds": (
            "From a commit to its last frame and answer.",
            lambda: service.log.writer.delivery_seconds,
        ),
        "dealer_table_load_seconds": (
            "From the first need of a table to its state in memory.",
            lambda: service.tables.load_seconds,
        ),
        "dealer_projector_slice_seconds": (
            "Time of a slice of the projection, without its COMMIT.",
            lambda: service.projection.slice_seconds,
        ),
    }
