"""`dealer export`: writes a table's bundle to a file or to standard output."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from dealer.cli.files import STANDARD_OUTPUT, is_stored, writing
from dealer.cli.options import Database, HouseKey, HouseUrl, TableId
from dealer.cli.output import echo_err, program, progress
from dealer.config import DATABASE


def export(
    table: TableId,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A file; - or nothing for standard output.",
            show_default=False,
        ),
    ] = STANDARD_OUTPUT,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    url: HouseUrl = None,
) -> None:
    """Write a table's bundle: every event, and every checkpoint that the house signed.

    It proves each closed round swap by swap; of an open round it reveals no card.

    ```
    dealer export 0199f3c2 -o game.jsonl
    dealer export 0199f3c2 | dealer verify -
    ```
    """
    with writing(output) as file:
        asyncio.run(_write(file, table, database, url, house_key))
    if is_stored(output):
        shown = shlex.quote(output)
        echo_err(f"The bundle is in {output}; check it with: {program()} verify {shown}")


async def _write(
    file: BinaryIO, table: str, database: str, url: str | None, house_key: Path | None
) -> None:
    from dealer.cli.commands import bundle

    if url is not None:
        for line in await asyncio.to_thread(bundle.from_house, url, table):
            file.write(line + b"\n")
        return
    with progress("Reading the log") as step:
        found = bundle.from_log(database, table, house_key=house_key, step=step)
        async with aclosing(found) as lines:
            async for line in lines:
                file.write(line + b"\n")
