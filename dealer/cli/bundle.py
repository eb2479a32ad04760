"""A table's bundle, as an operator takes it out of the log or anybody fetches it from the house."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import typer

from dealer.cli.options import TABLE_BYTES, find_table
from dealer.cli.output import Step, harmless, remark
from dealer.errors import (
    HouseKeyError,
    HouseUnreachable,
    NoteFault,
    SetupError,
    UnknownTable,
)
from dealer.eventlog import HouseKeys, Reading, Row, key_file
from dealer.eventlog.house import read_keys
from dealer.eventlog.look import look
from dealer.proof import bundle
from dealer.proof.checkpoint import Signer, open_note
from dealer.proof.tree import Tree, leaf_hash
from dealer.service import archived
from dealer.service.leaves import altered, leaf_of

ANSWER_SECONDS = 30.0
NOTES = 1000


class Extent(NamedTuple):
    """How far a bundle can go: to `size` of the log's `head` versions.

    `newest` is the largest checkpoint in the log; `signer` signs the head if that is beyond it.
    """

    table: bytes
    size: int
    head: int
    newest: tuple[int, str] | None
    signer: Signer | None


async def from_log(database: str, table: str, *, house_key: Path | None, step: Step) -> list[str]:
    """The lines of the bundle of the table that `table` names; says if it had to be cut short."""
    async with await look(database) as log:
        table_id = await find_table(log, table)
        extent = await measure(log, database, table_id, house_key=house_key)
        return [line async for line in lines(log, extent, step)]


async def measure(log: Reading, database: str, table: bytes, *, house_key: Path | None) -> Extent:
    """How far the bundle can go; a remark where that is not the whole log."""
    await archived.require_here(log, table)
    head = await log.head(table) or 0
    newest = await log.newest_checkpoint(table, upto=head)
    signed = 0 if newest is None else newest[0]
    if signed == head:
        return Extent(table, head, head, newest, None)
    house, without = await _house(log, database, house_key, table)
    if house is not None:
        return Extent(table, head, head, newest, Signer(house.signing_seed))
    if newest is None:
        raise UnknownTable(f"The house has signed nothing of this table yet, and {without}.")
    remark(
        f"The bundle ends at version {signed} of {head}, the last that the house has signed: "
        f"{without}."
    )
    return Extent(table, signed, head, newest, None)


async def lines(log: Reading, extent: Extent, step: Step) -> AsyncIterator[str]:
    """The lines of a bundle, without newlines.

    Raises DatabaseDamaged where the rows are not those that the house signed.
    """
    table, tree = extent.table, Tree()
    origin, key = "", b""
    async for rows in log.stream(table, upto=extent.size):
        for row in rows:
            if row.version == 1:
                origin, key = _named(table, row)
                yield bundle.header(origin=origin, key=key)
            yield (leaf := leaf_of(table, row))
            if extent.signer is not None:
                tree.append(leaf_hash(leaf.encode()))
                _compare(extent, row, tree, key)
        step(rows[-1].version, extent.size)
    after = 0
    while notes := await log.checkpoints(table, after=after, limit=NOTES):
        for size, note in notes:
            if size <= extent.size:
                yield bundle.checkpoint(note)
        after = notes[-1][0]
    if extent.signer is not None:
        yield bundle.checkpoint(
            extent.signer.sign(origin=origin, size=extent.size, root=tree.root())
        )


def _named(table: bytes, row: Row) -> tuple[str, bytes]:
    """Origin and key of a table, out of its first event."""
    try:
        opened = json.loads(row.public)
        return str(opened["origin"]), bytes.fromhex(opened["key"])
    except (ValueError, KeyError, TypeError):
        raise altered(table.hex()) from None


def _compare(extent: Extent, row: Row, tree: Tree, key: bytes) -> None:
    """Nothing is signed that builds on rows other than those the house signed before."""
    if extent.newest is None or row.version != extent.newest[0]:
        return
    try:
        _, root = open_note(extent.newest[1], key=key, table=extent.table.hex())
    except NoteFault:
        root = b""
    if root != tree.root():
        raise altered(extent.table.hex())


async def _house(
    log: Reading, database: str, house_key: Path | None, table: bytes
) -> tuple[HouseKeys | None, str]:
    """The keys that this table is signed under, if they are here; else why not."""
    try:
        file = key_file(database, house_key)
    except SetupError:
        return None, "its key was not named with --house-key"
    (opened,) = await log.read(table, limit=1)
    try:
        keys = await asyncio.to_thread(read_keys, file)
    except HouseKeyError:
        return None, f"its key {file} cannot be read here"
    for one in keys:
        if one.public_key.hex() == opened.members().get("key"):
            return one, ""
    return None, f"{file} is not its key"


def from_house(url: str, table: str) -> list[str]:
    """The lines of the bundle that the house at `url` gives for a table's whole id."""
    if len(table) != 2 * TABLE_BYTES:
        raise typer.BadParameter(f"With --url a table's whole id is needed, not {table!r}.")
    address = f"{web_address(url)}/tables/{table}/bundle.jsonl"
    try:
        with urlopen(address, timeout=ANSWER_SECONDS) as answer:
            data: bytes = answer.read()
    except HTTPError as error:
        sentence = harmless(error.read(500).decode(errors="replace").strip())
        raise UnknownTable(f"{url} gives no bundle of this table: {sentence}") from None
    except (URLError, HTTPException, OSError) as error:
        raise HouseUnreachable(f"The house at {url} does not answer: {_reason(error)}") from None
    return [line.decode(errors="surrogateescape") for line in bundle.read(data)]


def _reason(error: Exception) -> str:
    return str(error.reason) if isinstance(error, URLError) else str(error)


def web_address(url: str) -> str:
    """`http://host:port` of a house, given like that or as ws://…/ws."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    schemes = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
    if parts.scheme not in schemes or not parts.netloc:
        raise typer.BadParameter(f"{url!r} is no address of a house, like http://127.0.0.1:8080/.")
    return f"{schemes[parts.scheme]}://{parts.netloc}"


def socket_address(url: str) -> str:
    """`ws://host:port/ws` of a house, given like `web_address` takes it."""
    return web_address(url).replace("http", "ws", 1) + "/ws"
