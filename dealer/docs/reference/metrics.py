"""The table of metrics: kinds and labels from a server, advice from REFERENCE.md."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from dealer.docs.markdown import rows, table
from dealer.docs.reference.tables import with_table
from dealer.eventlog.address import sqlite_address
from dealer.gateway import serve
from dealer.service.startup import open_service

_HEADING = ("metric", "kind", "labels", "meaning", "when to act")


class _Metric(NamedTuple):
    """What a server says about a metric; `labels` are separated by commas."""

    kind: str
    labels: str
    help: str


def with_metrics(text: str) -> str:
    """The section of REFERENCE.md with the kind and the labels of each metric."""
    served = asyncio.run(_served())
    cells = []
    for names, meaning, advice in rows(text):
        found = re.findall(r"`(\w+)`", names)
        kinds = [served.pop(name) for name in found if name in served]
        shown = ", ".join(dict.fromkeys(metric.kind for metric in kinds))
        labels = ", ".join(dict.fromkeys(metric.labels for metric in kinds if metric.labels))
        cells.append((names, shown, labels, meaning, advice))
    cells += [
        (f"`{name}`", metric.kind, metric.labels, metric.help, "")
        for name, metric in served.items()
    ]
    return with_table(text, table(_HEADING, cells))


async def _served() -> dict[str, _Metric]:
    """The metrics of a server with an empty database, by name."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_service(sqlite_address(Path(folder) / "dealer.db")) as service,
            serve(service, port=0, ops_port=0) as gateway,
        ):
            # Before the first request no sample of a family shows its labels.
            labels = {
                family.name: ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
                for family in gateway.metrics.collect()
            }
            page = gateway.metrics.page().decode()
    return {
        family.name + "_total" * (family.type == "counter"): _Metric(
            family.type, labels.get(family.name, ""), family.documentation
        )
        for family in text_string_to_metric_families(page)
    }
