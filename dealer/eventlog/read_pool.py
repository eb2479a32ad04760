"""How much of a pool of read connections is in use."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool


class PoolUse(NamedTuple):
    """Connections that are in use, and the most that may be."""

    busy: int
    size: int


def pool_use(engine: AsyncEngine) -> PoolUse:
    """The use of an engine's pool, none of whose connections overflow it."""
    pool = engine.sync_engine.pool
    return PoolUse(pool.checkedout(), pool.size()) if isinstance(pool, QueuePool) else PoolUse(0, 0)
