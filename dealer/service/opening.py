"""The house opens in order, the log, then the key, then the tables, and closes the other way round.

With it opens the scribe, who keeps the read models up with the log while nothing else is written.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dealer.eventlog import Append, Log, Result, key_file, open_house
from dealer.eventlog.sealing import MASTER_BYTES
from dealer.projector.scribe import Scribe
from dealer.service.core import Service


@asynccontextmanager
async def open_service(
    database: str, *, house: str = "localhost", tables: int = 10_000, **log: Any
) -> AsyncIterator[Service]:
    """The service over the database at this address, which is made, with its key, if need be.

    `log` goes to `Log.open`. Raises DatabaseError, HouseKeyError or SetupError.
    """
    async with await Log.open(database, **log) as kept:
        key = await open_house(kept, key_file(database), fresh=secrets.token_bytes(MASTER_BYTES))
        service = Service(kept, key, house=house, tables=tables)
        scribe = Scribe(kept)
        served = kept.committed

        def committed(batch: list[tuple[Append, Result]]) -> None:
            if served is not None:
                served(batch)
            scribe.noticed(len(batch))

        kept.committed = committed
        scribe.start()
        looking = asyncio.create_task(service.look_around())
        try:
            yield service
        finally:
            looking.cancel()
            scribe.close()
            await service.close()
