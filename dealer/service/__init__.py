"""Service: executes commands on tables in memory, appends their events to the log, and notifies.

Load, decide, append, publish. The event log is the only authority: a table may leave memory at any
time and is loaded from the log again.
"""

from dealer.eventlog import EventRecord
from dealer.eventlog.nodes import Attendance
from dealer.service.nodes.presence import SharedPresence
from dealer.service.service import Service
from dealer.service.tables.execution import CommandResult, IdempotencyKey
from dealer.service.tables.live_table import CommitNotice, LiveTable, Snapshot

__all__ = [
    "Attendance",
    "CommandResult",
    "CommitNotice",
    "EventRecord",
    "IdempotencyKey",
    "LiveTable",
    "Service",
    "SharedPresence",
    "Snapshot",
]
