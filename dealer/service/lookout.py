"""Polls what other processes write to the tables that are followed here, once a second.

One statement asks for the heads of all these tables, and how often their checkpoints were
cosigned; hints between nodes only bring the question forward.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.service.desk import Desk
from dealer.service.memory import Memory
from dealer.service.presence import SharedPresence
from dealer.service.resident import Resident
from dealer.service.signing import Signing

LOOK_SECONDS = 1.0
"""How often the heads of the tables in use are compared with the log's."""


class Lookout:
    """Compares the tables in `memory` with the `log`, and lets `desk` take in what is new."""

    def __init__(
        self, log: Log, memory: Memory, desk: Desk, signing: Signing, presence: SharedPresence
    ) -> None:
        self._log = log
        self._memory = memory
        self._desk = desk
        self._signing = signing
        self._presence = presence
        self._hint = asyncio.Event()
        self._hinted: set[bytes] = set()

    def hinted(self, tables: set[bytes]) -> None:
        """Another process may have written to these tables: look at those in use, and soon."""
        self._hinted |= tables
        self._hint.set()

    async def look_around(self) -> None:
        """Take in what other processes write to tables that somebody here listens to; for ever.

        Every table in use is looked at once a second, a hinted one at once.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._hint.wait()
            self._hint.clear()
            hinted, self._hinted = self._hinted, set()
            followed = [resident for resident in self._memory if resident.sessions]
            poll = loop.time() >= due
            if poll:
                due = loop.time() + LOOK_SECONDS
            else:
                followed = [resident for resident in followed if resident.id in hinted]
            try:
                await self.look_at(followed)
                if poll:
                    await self._presence.exchange(followed)
            except DealerError:
                continue
            except Exception as error:
                loop.call_exception_handler(
                    {"message": "looking at other processes' work failed", "exception": error}
                )

    async def look_at(self, followed: list[Resident]) -> None:
        """Take in what the log has of these tables, and they have not, or no more."""
        if not followed:
            return
        believed = [(resident, resident.committed) for resident in followed]
        found = await self._log.heads_and_cosigned(resident.id for resident in followed)
        for resident, committed in believed:
            head, cosigned = found.get(resident.id, (0, 0))
            # Of a table that cannot be read its own guests are told; the others go on.
            with suppress(DealerError):
                if not committed <= head <= resident.committed:
                    await self._desk.catch_up(resident)
                if cosigned != resident.cosigned:
                    await self._signing.publish_cosigned(resident, count=cosigned)
