"""Gauges of the server: values that are read from its parts on each scrape."""

from __future__ import annotations

from collections.abc import Callable

from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.ws.admission import ConnectionRegistry


def gauges(
    context: GatewayContext, registry: ConnectionRegistry
) -> dict[str, tuple[str, Callable[[], float]]]:
    """The gauges by name, each with its help text and the function that reads it."""
    service = context.service
    return {
        "dealer_connections": ("Open connections.", lambda: len(registry.connections)),
        "dealer_addresses": (
            "Client addresses whose rate limits are kept.",
            lambda: len(context.budgets),
        ),
        "dealer_tables_resident": ("Tables in memory.", lambda: len(service.tables)),
        "dealer_tables_bytes": (
            "Estimated bytes of the tables in memory.",
            lambda: service.tables.bytes,
        ),
        "dealer_tables_asleep": (
            "Tables that are not in memory and whose shuffle has a deadline.",
            lambda: len(service.wakeups),
        ),
        "dealer_disk_free_bytes": (
            "Free bytes of the database's disk; NaN if it is on another machine.",
            lambda: service.maintenance.free,
        ),
        "dealer_requests_in_flight": (
            "Requests that are not answered yet.",
            lambda: context.in_flight,
        ),
        "dealer_appends_waiting": (
            "Appends that wait for their commit.",
            lambda: service.log.waiting,
        ),
        "dealer_commits_on_loop": (
            "1 while appends are committed on the event loop's thread.",
            lambda: service.log.commits_on_loop,
        ),
        "dealer_draining": ("1 while the server shuts down.", lambda: context.draining),
        "dealer_database_trouble": (
            "1 from a batch that could not be written to the next that is.",
            lambda: service.stats.failing,
        ),
    }
