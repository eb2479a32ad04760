"""Entries of the operators' journal for what services do to others, by the name of their key.

An entry is written right after its command was committed, in a transaction of its own, so that no
command waits for it. The event itself is in the log in any case; a crash in between loses the
entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.service.admin import AdminService
from dealer.service.service_keys import ServiceKey

log_ = logging.getLogger(__name__)


class ServiceJournal:
    """Adds entries to the journal of `log`, each in a task of its own; `close` waits for them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait until the entries so far are written."""
        await asyncio.gather(*self._tasks)

    def note(
        self, key: ServiceKey, what: str, table: str, *, why: str, details: Mapping[str, Any]
    ) -> None:
        """Add an entry: the service of `key` did `what` (a method) at the table, for a reason."""
        work = self._write(key, what, table, why, details)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(
        self, key: ServiceKey, what: str, table: str, why: str, details: Mapping[str, Any]
    ) -> None:
        admin = AdminService(self._log, who=f"key:{key.name}")
        try:
            await admin.note(what, table, why=why, details=details)
        except DealerError as error:
            fields = {"key": key.name, "what": what, "table": table, "says": str(error)}
            log_.error("journal not written", extra={"fields": fields})
