"""Where it is kept: the log of every table's events, and the seal on what nobody may read there."""

from dealer.eventlog.log import Log
from dealer.eventlog.rows import (
    Append,
    Appended,
    Chain,
    Conflict,
    Known,
    Result,
    Row,
    Snapshot,
    Stream,
)

__all__ = [
    "Append",
    "Appended",
    "Chain",
    "Conflict",
    "Known",
    "Log",
    "Result",
    "Row",
    "Snapshot",
    "Stream",
]
