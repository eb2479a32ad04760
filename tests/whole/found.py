"""What a house's files hold after an accident, looked at as the next house would open them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dealer.errors import DealerError
from dealer.projector.rebuild import Rebuild
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.opening import open_service

FILES = ("", "-wal", "-journal", ".key")
"""A database's files, by what follows its name; all that a house needs to open."""

_TABLES = (
    "SELECT table_id, version FROM stream WHERE id NOT IN (SELECT stream FROM archived) ORDER BY id"
)

EMPTY: Mapping[str, Sequence[str]] = {}


@dataclass
class Found:
    """The leaves of each table that is not archived, in order; `faults` are promises broken."""

    tables: dict[str, list[bytes]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


async def find(database: Path, *, copy_to: Path) -> Found:
    """Open a copy, verify every table, and compare the read models with the log."""
    return await look_into(copied(database, copy_to))


def copied(database: Path, copy_to: Path) -> Path:
    copy = copy_to / database.name
    copy_to.mkdir(parents=True, exist_ok=True)
    for end in FILES:
        copy.with_name(copy.name + end).unlink(missing_ok=True)
        there = database.with_name(database.name + end)
        if there.exists():
            shutil.copy(there, copy.with_name(copy.name + end))
    return copy


async def look_into(database: Path, *, saved: Mapping[str, Sequence[str]] = EMPTY) -> Found:
    """The same on the files themselves, which are changed by it as by any opening.

    `saved` has the checkpoints that somebody kept of each table.
    """
    found, url = Found(), f"sqlite:///{database}"
    try:
        async with open_service(url, wal_pages=50) as service:
            rows = await service.log.fetch(_TABLES)
            for table, version in rows:
                resident = await service.load(table.hex())
                lines = [line.encode() async for line in service.bundle(resident)]
                found.tables[table.hex()] = lines[1 : 1 + version]
                report = verify(
                    read(b"\n".join(lines) + b"\n"),
                    key=service.public_key,
                    saved=saved.get(table.hex(), ()),
                )
                if not report.ok:
                    found.faults.append(f"table {table.hex()}: {report.verdicts()}")
            rebuild = Rebuild()
            await service.log.schedule(rebuild.slice)
            if rebuild.different or rebuild.stopped:
                found.faults.append(f"the read models differ: {rebuild.differences[:3]}")
    except DealerError as error:
        found.faults.append(f"the house does not open: {error}")
    return found
