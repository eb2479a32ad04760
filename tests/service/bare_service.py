"""A service without a server's background tasks: it neither polls nor receives hints."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dealer.eventlog import Log
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.service import Service


@asynccontextmanager
async def bare_service(
    url: str, *, key: Path | None = None, fresh: bytes | None = None, **log: Any
) -> AsyncIterator[Service]:
    """The service over the database at `url`, with the key in the file `key` or a `fresh` one."""
    async with await Log.open(url, **log) as opened:
        fresh = fresh or secrets.token_bytes(32)
        service = Service(opened, await load_house_keys(opened, key_file(url, key), fresh=fresh))
        yield service
        await service.close()
