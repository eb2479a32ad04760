"""A table's whole log as one file that anybody can check, on any machine, for ever."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from dealer.cli.options import Database, HouseKey, HouseUrl, TableId, find_table
from dealer.cli.output import program, progress, remark
from dealer.config import DATABASE
from dealer.errors import SetupError


def export(
    table: TableId,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A file, in place of standard output.",
            show_default=False,
        ),
    ] = None,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    url: HouseUrl = None,
) -> None:
    """Write a table's bundle: every event, and every head that the house signed.

    A round that is closed can be proved from it, swap by swap; of an open round it tells no card.

    ```
    dealer export 0199f3c2 -o game.jsonl
    dealer export 0199f3c2 | dealer verify -
    ```
    """
    if output is None:
        asyncio.run(_write(sys.stdout.buffer, table, database, url, house_key))
        sys.stdout.buffer.flush()
        return
    # Under its own name only once it is whole: half a bundle would look like a log cut short.
    draft = output.with_name(f"{output.name}.part")
    try:
        with draft.open("wb") as file:
            asyncio.run(_write(file, table, database, url, house_key))
        os.replace(draft, output)
    except OSError as error:
        raise SetupError(f"{output} cannot be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)
    remark(f"The bundle is in {output}; check it with: {program()} verify {output}")


async def _write(
    file: BinaryIO, table: str, database: str, url: str | None, house_key: Path | None
) -> None:
    from dealer.cli import bundle
    from dealer.eventlog.look import look

    if url is not None:
        for line in await asyncio.to_thread(bundle.from_house, url, table):
            file.write(line.encode(errors="surrogateescape") + b"\n")
        return
    async with await look(database) as log:
        table_id = await find_table(log, table)
        extent = await bundle.measure(log, database, table_id, house_key=house_key)
        with progress("Reading the log") as step:
            async for line in bundle.lines(log, extent, step):
                file.write(line.encode() + b"\n")
