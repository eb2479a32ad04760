"""HTTP router: pages, downloads of tables, and files for programs of other origins.

Pages are the same for every client and contain no data of tables, which comes over the WebSocket.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from http import HTTPStatus
from typing import BinaryIO

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.errors import DealerError, TableArchived
from dealer.game.state import Table
from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.checks import bearer_of
from dealer.gateway.net.responses import (
    PAGE,
    framing,
    page_policy,
    response,
    root_from,
)
from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.pages.bundles import Bundles
from dealer.gateway.pages.downloads import (
    HISTORY_VARIES,
    Download,
    history_download,
    history_tag,
)
from dealer.gateway.pages.error_pages import ErrorPages, refusal_of
from dealer.gateway.pages.feed import FeedAnswers
from dealer.gateway.pages.histories import Histories, language_for
from dealer.gateway.pages.self_contained_page import audit_page
from dealer.gateway.pages.static_files import (
    KINDS,
    REVALIDATE,
    File,
    StaticFiles,
)
from dealer.gateway.pages.streams import ConcurrencyLimit
from dealer.gateway.posts import PATH as RPC_PATH
from dealer.gateway.posts import method_refused
from dealer.gateway.rate_limit.budgets import rate_limited
from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.session.context import GatewayContext
from dealer.packs.catalogue import Catalogue
from dealer.service.tables import archive as archived
from dealer.service.tables.archive import ArchiveRecord

PAGES = {"/": "lobby", "/audit": "audit", "/finished": "finished"}
TABLE_PAGES = {"": "table", "/audit": "audit", "/history": "history"}
BUNDLE = "/bundle.jsonl"
FEED = "/feed"
AUDIT_FILE = "/audit.html"

_HASHED = re.compile(r"/web/(?P<folder>[0-9a-f]{16})/(?P<path>[\w./-]+)")
_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?P<what>/[\w.-]+)?")


class Router:
    """Answers every HTTP request that is no WebSocket handshake.

    `documents` are JSON documents by path, each made on its first request; those of `catalogue` are
    among them. `web` are the files of the pages. `frame_ancestors` are the origins whose pages may
    show these pages in a frame. `path` is the path under which clients reach this server; the
    targets of requests are without it. `check` admits or refuses a request by its head.
    """

    keeps = False

    def __init__(
        self,
        context: GatewayContext,
        check: Callable[[ClientConnection, Request], Response | None],
        *,
        documents: Mapping[str, Callable[[], bytes]],
        catalogue: Catalogue,
        frame_ancestors: Sequence[str],
        appearance: Appearance,
        web: StaticFiles,
        path: str,
    ) -> None:
        self._context = context
        self._check = check
        self._tasks: set[asyncio.Task[None]] = set()
        self._error_pages = ErrorPages(appearance, frame_ancestors)
        self._path = path
        self._service = context.service
        self._documents = documents
        self._document_files: dict[str, File] = {}
        self._reading = asyncio.Lock()  # see `blocks_of`
        self._histories = Histories(self._reading, catalogue)
        self._feed = FeedAnswers(context.service)
        self._bundles = Bundles(context.service, self._reading)
        self._archived_limit = ConcurrencyLimit("archived bundles")
        self._appearance = appearance
        self._web = web
        self._page_policy = page_policy(frame_ancestors)
        self._framing = framing(frame_ancestors)

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        refusal = self._check(connection, request)
        return None if refusal is None else self._error_pages.instead_of(request, refusal)

    def count(self, status: int) -> None: ...

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._run(connection, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, connection: ClientConnection, request: Request) -> None:
        made = partial(self.answer, connection, request)
        try:
            answer = await metered(made, connection.budget.cpu)
        except Exception as error:
            self._context.log_throttle.say_error(error, "internal error", what="no answer")
            sentence = "Internal error; see the server's log.\n"
            answer = response(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        if answer is not None:
            connection.answer(self._error_pages.instead_of(request, answer))

    async def close(self, *, within: float) -> None:
        """Wait for the answers that are still being made, at most so many seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)

    async def answer(self, connection: ClientConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] == RPC_PATH:
            return method_refused(request)
        if request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n")
        try:
            return await self._route(connection, request)
        except (MultipleValuesError, DealerError) as error:
            return refusal_of(error)

    async def _route(self, connection: ClientConnection, request: Request) -> Response | None:
        path, mark, query = request.path.partition("?")
        if f"{path}/" == self._path:
            where = f"{self._path}{mark}{query}"
            return response(HTTPStatus.PERMANENT_REDIRECT, b"", Location=where)
        if path in PAGES:
            return self._page(request, PAGES[path])
        if answer := self._web.find_public(request, path):
            return answer
        if file := self._web.installed.get(path):
            return file.answer(request, caching=REVALIDATE)
        if path in self._documents:
            file = self._document(path)
            return file.answer(request, caching=REVALIDATE, Access_Control_Allow_Origin="*")
        if path == AUDIT_FILE:
            policy = f"{audit_page().policy}; {self._framing}"
            return self._audit_file.answer(
                request, caching=REVALIDATE, Content_Security_Policy=policy
            )
        if path == FEED:
            return await self._feed.answer(connection, request)
        if match := _HASHED.fullmatch(path):
            return self._web.find(request, match["folder"], match["path"]) or self._not_found()
        if match := _TABLE.fullmatch(path):
            return await self._of_table(connection, request, match["table"], match["what"] or "")
        return self._not_found()

    @cached_property
    def _audit_file(self) -> File:
        return File(self._appearance.warn(audit_page().page.decode()).encode(), PAGE)

    def _document(self, path: str) -> File:
        if path not in self._document_files:
            self._document_files[path] = File(self._documents[path](), KINDS[".json"])
        return self._document_files[path]

    def _not_found(self) -> Response:
        sentence = f"There is nothing at this address; the tables are listed at {self._path}.\n"
        return response(HTTPStatus.NOT_FOUND, sentence)

    def _page(self, request: Request, name: str) -> Response:
        root = root_from(request.path.partition("?")[0])
        return self._web.page(name, root=root).answer(
            request, caching=REVALIDATE, Content_Security_Policy=self._page_policy
        )

    async def _of_table(
        self, connection: ClientConnection, request: Request, table: str, what: str
    ) -> Response | None:
        try:
            live_table = await self._service.lifecycle.load(table)
        except TableArchived:
            return await self._of_archived(connection, request, table, what)
        if what in TABLE_PAGES:
            return self._page(request, TABLE_PAGES[what])
        if what != BUNDLE and not self._histories.has(what):
            return self._not_found()
        if not live_table.table.rules.watched and not await self._may_read(connection, table):
            self._require_token(request, live_table.id, live_table.table)
        self._require_paid(connection)
        writing = partial(self._pay, connection)
        if what == BUNDLE:
            return await self._bundles.of_live(connection, request, live_table, writing=writing)
        number = self._histories.round_of(what)
        named = f"{what} {language_for(request).tag}"
        download = await history_download(self._service, live_table, request, named, round=number)
        if answer := download.unchanged(request):
            return answer
        lines = self._service.bundle(live_table, writing=writing)
        return await self._histories.answer(
            connection, request, lines, what, events=live_table.committed, download=download
        )

    async def _may_read(self, connection: ClientConnection, table: str) -> bool:
        """Whether the request's service key reads this table even if it is private."""
        key = connection.service_key
        if key is None or not key.may("read"):
            return False
        authority = self._service.service_tables.authority
        return await authority(bytes.fromhex(table), key) is not None

    async def _of_archived(
        self, connection: ClientConnection, request: Request, table: str, what: str
    ) -> Response | None:
        """The bundle, the histories and the audit page of an archived table."""
        kept = await archived.find(self._service.log, bytes.fromhex(table))
        if kept is None or what == "":
            raise TableArchived(
                "This table is closed and archived. Its bundle, if this server still has it, is "
                f"at {self._path}tables/{table}/bundle.jsonl"
            )
        if what in TABLE_PAGES:
            self._service.archive.find(kept)
            return self._page(request, TABLE_PAGES[what])
        if what != BUNDLE and not self._histories.has(what):
            return self._not_found()
        self._require_paid(connection)
        service = await self._may_read(connection, table)
        opening = self._open_archived(request, table, kept, service=service)
        async with AsyncExitStack() as stack:
            with self._archived_limit.admitted(connection.address):  # each reads a file twice
                if what != BUNDLE:
                    download = _archived_history(request, what, kept)
                    return await self._histories.answer(
                        connection,
                        request,
                        _lines_in(opening),
                        what,
                        events=kept.size,
                        download=download,
                    )
                file, public = await stack.enter_async_context(opening)
            # The limit does not count those that read slowly.
            return await self._bundles.of_archived(connection, request, kept, file, public=public)

    @asynccontextmanager
    async def _open_archived(
        self, request: Request, table: str, kept: ArchiveRecord, *, service: bool
    ) -> AsyncIterator[tuple[BinaryIO, bool]]:
        """An archived bundle, and whether it is public; BadToken unless the client may read it."""
        with await self._service.archive.open(kept) as file:
            state = await asyncio.to_thread(archived.beginning_in, file)
            public = state.rules.watched
            if not (service or public):
                state = await asyncio.to_thread(archived.table_in, file)
                self._require_token(request, bytes.fromhex(table), state)
            yield file, public

    def _require_token(self, request: Request, table: bytes, state: Table) -> None:
        self._service.tokens.of(state.key).actor(table, state, bearer_of(request.headers) or "")

    def _pay(self, connection: ClientConnection) -> None:
        """Charge the checkpoint that a download writes; RateLimited if the address may not."""
        connection.budget.pay(BYTES_PER_COMMIT, self._context.clock())

    def _require_paid(self, connection: ClientConnection) -> None:
        """Raise RateLimited while the address owes processor time."""
        wait = connection.budget.busy(self._context.clock())
        if wait:
            raise rate_limited(connection.budget.cpu_exhausted, wait)


def _archived_history(request: Request, what: str, kept: ArchiveRecord) -> Download:
    """How to send a history of an archived table, which may be a private one: it is not stored."""
    named = f"{what} {language_for(request).tag}"
    return Download(history_tag(named, kept.sha256.hex()), vary=HISTORY_VARIES)


async def _lines_in(
    opening: AbstractAsyncContextManager[tuple[BinaryIO, bool]],
) -> AsyncGenerator[str]:
    """The lines of an archived bundle, which is opened for the first one."""
    async with opening as (file, _):
        async for line in archived.lines_of(file):
            yield line
