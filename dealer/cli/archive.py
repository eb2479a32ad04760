"""Old tables leave the database as files that prove them: written, checked, and only then let go.

The order of the work is what keeps a table from being lost whenever the program dies: the bundle is
made and verified, written under its own name and on disk, read again and verified again; then one
transaction takes the table into the list of archived ones, if no cosignature came in meanwhile; and
only after it the events are deleted, a few thousand at a time. Whoever comes next goes on there.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import Database, Operator, asked_rightly, find_table, whoami
from dealer.cli.output import program, progress, remark, say
from dealer.config import DATABASE
from dealer.errors import DatabaseDamaged, RaceLost, Refused, SetupError, TableArchived

if TYPE_CHECKING:
    from dealer.eventlog import Log
    from dealer.eventlog.office import Archived
    from dealer.service.office import Office

_CLOSED = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type = 'TableClosed' AND e.at <= ?
  AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id)
ORDER BY e.at
"""
_BEGUN = """
SELECT s.table_id FROM archived a JOIN stream s ON s.id = a.stream
WHERE EXISTS (SELECT 1 FROM event e WHERE e.stream = a.stream)
   OR EXISTS (SELECT 1 FROM tables t WHERE t.stream = a.stream)
"""
_ATTEMPTS = 3
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}

Reached = Callable[[str], None]
"""Called with the name of each point at which the work may break off."""


def archive(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FOLDER", envvar="DEALER_ARCHIVE", help="Where bundles go."),
    ],
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="One closed table.", show_default=False),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="All tables that were closed so long ago: 90d, 36h or 30m.",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, for the journal.")
    ] = "",
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Write closed tables to files that prove them, and let go of their rows.

    Each bundle is verified, written, put on disk, read and verified again; only then do the table's
    events leave the database. What was broken off goes on with the next call. Back up the folder:
    it is all that is left of these tables. `dealer serve --archive FOLDER` gives the bundles out.

    ```
    dealer archive --older-than 90d --to /var/lib/dealer/archive
    dealer archive 0199f3c2 --to archive
    ```
    """
    if (table is None) == (older_than is None):
        raise typer.BadParameter("Name a table, or say how old with --older-than.")
    oldest = None if older_than is None else age(older_than)
    with asked_rightly():
        if not to.is_dir():
            raise SetupError(f"There is no folder {to}; make it first.")
    done, bad = asyncio.run(archive_tables(database, to, table, oldest, why, operator or whoami()))
    say(f"{done} table{'' if done == 1 else 's'} archived to {to}.")
    if bad:
        raise DatabaseDamaged(
            f"Not archived, and nothing of them let go: {', '.join(bad)}. Look into each with "
            "`dealer audit TABLE`, and compare it with the bundles that its players kept."
        )


def age(text: str) -> int:
    """Milliseconds."""
    match = re.fullmatch(r"([0-9]{1,6})([dhm])", text)
    if match is None:
        raise typer.BadParameter(f"An age is like 90d, 36h or 30m, not {text!r}.")
    return int(match[1]) * _UNITS[match[2]]


async def archive_tables(
    database: str,
    folder: Path,
    table: str | None,
    age: int | None,
    why: str,
    who: str,
    *,
    reached: Reached = lambda point: None,
) -> tuple[int, list[str]]:
    """Archive one table, or all closed for `age` milliseconds; how many were, and which not.

    One of many that cannot be archived holds up no other.
    """
    from dealer.eventlog import Log
    from dealer.eventlog.look import look
    from dealer.service.office import Office

    await (await look(database)).close()
    async with _alone(folder), await Log.open(database) as log:
        office = Office(log, who=who)
        for (one,) in await log.fetch(_BEGUN):
            await _let_go(log, one, reached)
        if table is not None:
            wanted = [await find_table(log, table)]
        else:
            found = await log.fetch(_CLOSED, (office.now() - (age or 0),))
            wanted = [one for (one,) in found]
        bad = []
        for one in wanted:
            try:
                await _archive(log, office, database, folder, one, why=why, reached=reached)
            except (DatabaseDamaged, RaceLost, Refused) as error:
                if table is not None:
                    raise
                remark(str(error))
                bad.append(one.hex())
        return len(wanted) - len(bad), bad


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    """Of two at one folder the slower could put an older bundle in the place of a newer one."""
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SetupError(
                    f"Another `dealer archive` is at work in {folder}; try again at its end."
                ) from None
        yield
    finally:
        os.close(handle)


async def _archive(
    log: Log,
    office: Office,
    database: str,
    folder: Path,
    table: bytes,
    *,
    why: str,
    reached: Reached,
) -> None:
    from dealer.service import archived

    await archived.require_here(log, table)
    for attempt in range(1, _ATTEMPTS + 1):
        draft = f"{table.hex()}.jsonl.{office.random(4).hex()}.part"
        kept = await _write(log, database, folder, table, draft, reached)
        try:
            await office.archive(table, kept, why=why)
            break
        except RaceLost:
            if attempt == _ATTEMPTS:
                raise
    reached("archived")
    await _let_go(log, table, reached)
    remark(f"{table.hex()} is in {folder / kept.file}; {program()} verify checks it.")


async def _write(
    log: Log, database: str, folder: Path, table: bytes, draft: str, reached: Reached
) -> Archived:
    """The bundle on disk, verified before and after."""
    from dealer.cli import bundle
    from dealer.eventlog.office import Archived, notes_digest
    from dealer.proof.bundle import read

    head = await log.head(table) or 0
    last = await log.read(table, after=head - 1, limit=1)
    if not last or last[0].type != "TableClosed":
        raise TableArchived("Only a closed table can be archived; its host closes it.")
    notes = [note async for note in _notes(log, table)]
    extent = await bundle.measure(log, database, table, house_key=None)
    with progress("Reading the log") as step:
        lines = [line.encode() async for line in bundle.lines(log, extent, step)]
    key, root = _verify(lines, table, head)
    reached("verified")
    data = b"".join(line + b"\n" for line in lines)
    file = folder / f"{table.hex()}.jsonl"
    await asyncio.to_thread(_put, file, data, folder / draft, reached)
    written = await asyncio.to_thread(file.read_bytes)
    _verify(read(written), table, head)
    reached("verified again")
    return Archived(
        size=head,
        root=root,
        house_key=key,
        file=file.name,
        length=len(written),
        sha256=sha256(written).digest(),
        closed_at=last[0].at,
        notes=notes_digest(notes),
    )


async def _notes(log: Log, table: bytes) -> AsyncIterator[tuple[int, str]]:
    after = -1
    while found := await log.checkpoints(table, after=after):
        for note in found:
            yield note
        after = found[-1][0]


def _verify(lines: list[bytes], table: bytes, head: int) -> tuple[bytes, bytes]:
    """The table's key and root as these lines prove them; raises DatabaseDamaged if they do not."""
    from dealer.proof.checkpoint import open_note
    from dealer.proof.verify import verify

    report = verify(lines)
    if report.fault is not None:
        raise DatabaseDamaged(
            f"The bundle of table {table.hex()} does not hold ({report.fault}); nothing of it was "
            f"let go. See `dealer audit {table.hex()}`, and the bundles that its players kept."
        )
    key = bytes.fromhex(report.key)
    note = json.loads(lines[-1])["checkpoint"]
    size, root = open_note(note, key=key, table=table.hex())
    if size != head:
        raise DatabaseDamaged(f"The bundle of table {table.hex()} is not whole.")
    return key, root


def _put(file: Path, data: bytes, draft: Path, reached: Reached) -> None:
    """The file under its own name once all of it is on disk; drafts that were left over go."""
    from dealer.eventlog.house import sync_folder

    try:
        with draft.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        reached("drafted")
        os.replace(draft, file)
        reached("named")
        for left_over in file.parent.glob(f"{file.name}.*.part"):
            left_over.unlink(missing_ok=True)
        sync_folder(file.parent)
    except OSError as error:
        raise SetupError(f"{file} cannot be written: {error.strerror}.") from None


async def _let_go(log: Log, table: bytes, reached: Reached) -> None:
    """Delete what the archived table still has in the database."""
    from dealer.eventlog import office
    from dealer.projector.schema import MODELS

    models = [model.name for model in MODELS]
    more = True
    while more:
        more = await log.carry_out(lambda connection: office.let_go(connection, table, models))
        reached("let go")
