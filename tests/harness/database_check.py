"""Checks of a database after a crash: open it as the next server would, and verify every table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from alembic import command

from dealer.errors import DealerError
from dealer.eventlog.protocols import Connection
from dealer.eventlog.schema import alembic_config
from dealer.projector.rebuild import Rebuild
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import open_service

FILES = ("", "-wal", "-journal", ".key")
"""Suffixes of the files of a database; a server needs all that exist to open it."""

_TABLES = (
    "SELECT table_id, version FROM stream WHERE id NOT IN (SELECT stream FROM archived) ORDER BY id"
)

EMPTY: Mapping[str, Sequence[str]] = {}


@dataclass
class CheckResult:
    """The leaves of each table that is not archived, in order; `faults` are violated guarantees."""

    tables: dict[str, list[bytes]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def check_schema(connection: Connection) -> None:
    """Raise Alembic's CommandError if the migrations and the declared schema differ."""
    command.check(alembic_config(connection))


async def check_copy(database: Path, *, copy_to: Path) -> CheckResult:
    """Open a copy, verify every table, and compare the read models with the log."""
    return await check_files(copy_database(database, copy_to))


def copy_database(database: Path, copy_to: Path) -> Path:
    copy = copy_to / database.name
    copy_to.mkdir(parents=True, exist_ok=True)
    for end in FILES:
        copy.with_name(copy.name + end).unlink(missing_ok=True)
        original = database.with_name(database.name + end)
        if original.exists():
            shutil.copy(original, copy.with_name(copy.name + end))
    return copy


async def check_files(database: Path, *, saved: Mapping[str, Sequence[str]] = EMPTY) -> CheckResult:
    """Check the files themselves, which changes them.

    `saved` has the checkpoints that clients saved, by table.
    """
    found, url = CheckResult(), f"sqlite:///{database}"
    try:
        async with open_service(url, wal_pages=50) as service:
            rows = await service.log.fetch(_TABLES)
            for table, version in rows:
                live_table = await service.lifecycle.load(table.hex())
                lines = [line.encode() async for line in service.bundle(live_table)]
                found.tables[table.hex()] = lines[1 : 1 + version]
                report = verify(
                    read(b"\n".join(lines) + b"\n"),
                    key=service.keys.public_key,
                    saved=saved.get(table.hex(), ()),
                )
                if not report.ok:
                    found.faults.append(f"table {table.hex()}: {report.verdicts()}")
            rebuild = Rebuild()
            await service.log.run_when_idle(rebuild.slice)
            if rebuild.different or rebuild.stopped:
                found.faults.append(f"the read models differ: {rebuild.differences[:3]}")
    except DealerError as error:
        found.faults.append(f"the server does not start: {error}")
    return found
