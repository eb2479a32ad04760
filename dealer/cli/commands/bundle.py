"""Bundles for the commands: read from the event log, or downloaded from a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError

import typer

from dealer.cli.options import find_table
from dealer.cli.output import Step, echo_err, progress, safe_text
from dealer.errors import BadRequest, HouseUnreachable, UnknownTable
from dealer.eventlog.backends import open_readonly
from dealer.outgoing import opener
from dealer.proof import bundle
from dealer.service.reading.bundle import bundle_lines, bundle_range
from dealer.service.tables.table_ids import TABLE_ID_BYTES

ANSWER_SECONDS = 30.0


def of_table(
    database: str, table: str, *, url: str | None = None, house_key: Path | None = None
) -> list[bytes]:
    """The lines of a table's bundle, from the server at `url` or, without one, from the log."""
    if url is not None:
        return from_house(url, table)

    async def read() -> list[bytes]:
        with progress("Reading the log") as step:
            lines = from_log(database, table, house_key=house_key, step=step)
            return [line async for line in lines]

    return asyncio.run(read())


async def from_log(
    database: str, table: str, *, house_key: Path | None, step: Step
) -> AsyncGenerator[bytes]:
    """The lines of the bundle of a table in the log, by its id or a prefix of it.

    Prints a remark if the bundle ends before the head of the log.
    """
    async with await open_readonly(database) as log:
        table_id = await find_table(log, table)
        extent = await bundle_range(log, database, table_id, house_key=house_key)
        if extent.size < extent.head:
            echo_err(
                f"The bundle ends at version {extent.size} of {extent.head}, the last that the "
                f"house has signed: {extent.unsigned_reason}."
            )
        async for line in bundle_lines(log, extent, step=step):
            yield line.encode()


def from_house(url: str, table: str) -> list[bytes]:
    """The lines of the bundle of a table, by its whole id, that the server at `url` sends."""
    if len(table) != 2 * TABLE_ID_BYTES:
        raise typer.BadParameter(f"--url needs the table's whole id, not {table!r}.")
    address = f"{web_address(url)}/tables/{table}/bundle.jsonl"
    try:
        with opener().open(address, timeout=ANSWER_SECONDS) as answer:
            data: bytes = answer.read()
    except HTTPError as error:
        sentence = safe_text(error.read(500).decode(errors="replace").strip())
        raise UnknownTable(f"{url} sent no bundle of this table: {sentence}") from None
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise HouseUnreachable(f"The server at {url} does not answer: {reason}") from None
    return bundle.read(data)


def web_address(url: str) -> str:
    """The address of a server's pages, without a slash at the end; see `socket_address`."""
    from dealer.bots.links import page_address

    return page_address(socket_address(url))


def socket_address(url: str) -> str:
    """The WebSocket address of a server, given like that or as the address of its pages.

    Without a scheme it is that of pages: `127.0.0.1:8080` or `example.org/cards/`.
    """
    from dealer.bots import links

    try:
        return links.socket_address(url if "://" in url else f"http://{url}")
    except BadRequest:
        raise typer.BadParameter(
            f"{url!r} is not a server's address, like http://127.0.0.1:8080/."
        ) from None
