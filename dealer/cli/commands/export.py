"""`dealer export`: writes a table's bundle to a file or to standard output."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from dealer.cli.options import Database, HouseKey, HouseUrl, TableId
from dealer.cli.output import echo_err, program, progress
from dealer.config import DATABASE
from dealer.errors import ConfigurationError


def export(
    table: TableId,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A file; standard output if not given.",
            show_default=False,
        ),
    ] = None,
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
    if output is None:
        asyncio.run(_write(sys.stdout.buffer, table, database, url, house_key))
        sys.stdout.buffer.flush()
        return
    # Renamed only once it is complete: half a bundle would look like a truncated log.
    draft = output.with_name(f"{output.name}.part")
    try:
        with draft.open("wb") as file:
            asyncio.run(_write(file, table, database, url, house_key))
        os.replace(draft, output)
    except OSError as error:
        raise ConfigurationError(f"{output} cannot be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)
    echo_err(f"The bundle is in {output}; check it with: {program()} verify {output}")


async def _write(
    file: BinaryIO, table: str, database: str, url: str | None, house_key: Path | None
) -> None:
    from dealer.cli.commands import bundle

    if url is not None:
        for line in await asyncio.to_thread(bundle.from_house, url, table):
            file.write(line + b"\n")
        return
    with progress("Reading the log") as step:
        async for line in bundle.from_log(database, table, house_key=house_key, step=step):
            file.write(line + b"\n")
