"""CloudEvents 1.0 of the feed's objects: the body of a webhook's request, structured JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from dealer.feed.reader import Entry

CONTENT_TYPE = "application/cloudevents+json"

SKIPPED = "Skipped"
"""The type of what stands for versions that were archived or damaged before their delivery."""


def id_of(entry: Entry) -> str:
    """The id of an object, the same at each delivery: its table and its version."""
    skipped = "" if entry.type else "-skipped"
    return f"{entry.table.hex()}/{entry.version}{skipped}"


def body_of(entry: Entry, *, house: str) -> bytes:
    """One CloudEvent; `house` is the name of the house."""
    table = entry.table.hex()
    source = json.dumps(f"https://{house}/tables/{table}")
    time = f'"time":"{_time(entry.at)}",' if entry.type else ""
    return (
        f'{{"specversion":"1.0","id":"{id_of(entry)}","source":{source},'
        f'"type":"dealer.{entry.type or SKIPPED}",{time}"subject":"{table}",'
        f'"datacontenttype":"application/json","data":{entry.text}}}'
    ).encode()


def _time(at: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"
