"""Notifications of the server: the parameters and the meaning of each."""

from __future__ import annotations

import inspect

from msgspec import Struct

from dealer.gateway.wire import results as r

NOTIFICATION_TYPES: dict[str, type[Struct]] = {
    "snapshot": r.Snapshot,
    "resumed": r.ResumedNotice,
    "checkpoint": r.Checkpoint,
    "presence": r.Presence,
    "feed": r.FeedEvent,
    "session.drain": r.Drain,
}
"""The notifications with a result type; `event` and `events` contain leaves of the log."""

NOTIFICATIONS: dict[str, str] = {
    "event": "One event, as this viewer may see it; every version is sent once, in order.",
    "events": "Several events that were written together.",
} | {name: inspect.getdoc(kind) or "" for name, kind in NOTIFICATION_TYPES.items()}
"""What each notification says."""
