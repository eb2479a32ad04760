"""Downloads of one table: its bundle and its histories, out of the log or of the archive.

A client that may watch the table gets them; those of a private table need a token of it, or a
service key that reads it. An address that owes processor time waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import BinaryIO

from websockets.http11 import Request, Response

from dealer.errors import TableArchived
from dealer.game.state import Table
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.checks import bearer_of
from dealer.gateway.pages import histories
from dealer.gateway.pages.bundles import Bundles
from dealer.gateway.pages.streams import ConcurrencyLimit, Download
from dealer.gateway.rate_limit.budgets import rate_limited
from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT
from dealer.gateway.session.context import GatewayContext
from dealer.packs.catalogue import Catalogue
from dealer.service import LiveTable
from dealer.service.tables import archive as archived
from dealer.service.tables.archive import ArchiveRecord

BUNDLE = "/bundle.jsonl"


class TableDownloads:
    """Answers `/bundle.jsonl` and the histories of a table, whose address is below `path`.

    The methods raise DealerError if the client may not have it, or it is not there.
    """

    def __init__(self, context: GatewayContext, catalogue: Catalogue, *, path: str) -> None:
        self._context = context
        self._service = context.service
        self._path = path
        reading = asyncio.Lock()  # see `blocks_of`
        self._histories = histories.Histories(reading, catalogue)
        self._bundles = Bundles(context.service, reading)
        self._archived_limit = ConcurrencyLimit("archived bundles")

    def has(self, what: str) -> bool:
        """Whether `what`, an address below the table's, leads to a download."""
        return what == BUNDLE or self._histories.has(what)

    async def find(self, table: str, what: str) -> LiveTable | ArchiveRecord:
        """A table in the log, or the record of an archived one, which can no longer be played."""
        try:
            return await self._service.lifecycle.load(table)
        except TableArchived:
            kept = await archived.find(self._service.log, bytes.fromhex(table))
        if kept is None or what == "":
            raise TableArchived(
                "This table is closed and archived. Its bundle, if this server still has it, is "
                f"at {self._path}tables/{table}/bundle.jsonl"
            )
        return kept

    async def answer(
        self,
        connection: ClientConnection,
        request: Request,
        table: str,
        what: str,
        found: LiveTable | ArchiveRecord,
    ) -> Response | None:
        """Send the download `what` of a table; None if it was sent, or the client is gone."""
        if isinstance(found, LiveTable):
            return await self._of_live(connection, request, found, what)
        return await self._of_archived(connection, request, bytes.fromhex(table), what, found)

    async def _of_live(
        self, connection: ClientConnection, request: Request, live_table: LiveTable, what: str
    ) -> Response | None:
        table = live_table.table
        if not table.rules.watched and not await self._may_read(connection, live_table.id):
            self._require_token(request, live_table.id, table)
        self._require_no_debt(connection)
        writing = partial(self._admit_write, connection)
        if what == BUNDLE:
            return await self._bundles.of_live(connection, request, live_table, writing=writing)
        number = self._histories.round_of(what)
        named = f"{what} {histories.language_for(request).tag}"
        download = await histories.history_download(
            self._service, live_table, request, named, round=number
        )
        lines = self._service.bundle(live_table, writing=writing)
        return await self._histories.answer(
            connection, request, lines, what, events=live_table.committed, download=download
        )

    async def _of_archived(
        self,
        connection: ClientConnection,
        request: Request,
        table: bytes,
        what: str,
        kept: ArchiveRecord,
    ) -> Response | None:
        self._require_no_debt(connection)
        service = await self._may_read(connection, table)
        opening = self._open_archived(request, table, kept, service=service)
        limit = self._archived_limit.admitted(connection.address)  # each reads a file twice
        if what == BUNDLE:
            async with AsyncExitStack() as stack:
                with limit:
                    file, public = await stack.enter_async_context(opening)
                # The limit does not count those that read slowly.
                return await self._bundles.of_archived(
                    connection, request, kept, file, public=public
                )
        with limit:
            return await self._histories.answer(
                connection,
                request,
                _lines_in(opening),
                what,
                events=kept.size,
                download=_archived_history(request, what, kept),
            )

    @asynccontextmanager
    async def _open_archived(
        self, request: Request, table: bytes, kept: ArchiveRecord, *, service: bool
    ) -> AsyncIterator[tuple[BinaryIO, bool]]:
        """An archived bundle, and whether it is public; BadToken unless the client may read it."""
        with await self._service.archive.open(kept) as file:
            state = await asyncio.to_thread(archived.beginning_in, file)
            public = state.rules.watched
            if not (service or public):
                state = await asyncio.to_thread(archived.table_in, file)
                self._require_token(request, table, state)
            yield file, public

    def _require_token(self, request: Request, table: bytes, state: Table) -> None:
        self._service.tokens.of(state.key).actor(table, state, bearer_of(request.headers) or "")

    def _admit_write(self, connection: ClientConnection) -> None:
        """Charge the checkpoint that a download writes; RateLimited if the address may not."""
        connection.budget.admit_write(BYTES_PER_COMMIT, self._context.clock())

    def _require_no_debt(self, connection: ClientConnection) -> None:
        """Raise RateLimited while the address owes processor time."""
        wait = connection.budget.busy(self._context.clock())
        if wait:
            raise rate_limited(connection.budget.cpu_exhausted, wait)

    async def _may_read(self, connection: ClientConnection, table: bytes) -> bool:
        """Whether the request's service key reads this table even if it is private."""
        key = connection.service_key
        if key is None or not key.may("read"):
            return False
        authority = self._service.service_tables.authority
        return await authority(table, key) is not None


def _archived_history(request: Request, what: str, kept: ArchiveRecord) -> Download:
    """How to send a history of an archived table, which may be a private one: it is not stored."""
    named = f"{what} {histories.language_for(request).tag}"
    return Download(histories.history_tag(named, kept.sha256.hex()), vary=histories.HISTORY_VARIES)


async def _lines_in(
    opening: AbstractAsyncContextManager[tuple[BinaryIO, bool]],
) -> AsyncGenerator[str]:
    """The lines of an archived bundle, which is opened for the first one."""
    async with opening as (file, _):
        async for line in archived.lines_of(file):
            yield line
