"""The dealer at work: a wish comes in, is judged, written down, and only then told to the table.

Load, decide, append, tell. `Service` holds the tables that are being played in memory; the log is
the only authority, and a table can be dropped at any moment and come back from it.
"""

from dealer.eventlog.presence import Attendance
from dealer.service.core import Service
from dealer.service.presence import SharedPresence
from dealer.service.record import Entry
from dealer.service.requests import Done
from dealer.service.resident import Resident
from dealer.service.snapshots import Published, Snapshot

__all__ = [
    "Attendance",
    "Done",
    "Entry",
    "Published",
    "Resident",
    "Service",
    "SharedPresence",
    "Snapshot",
]
