"""HTTP router: pages, downloads of tables, and files for programs of other origins.

Pages are the same for every client and contain no data of tables, which comes over the WebSocket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from http import HTTPStatus
from urllib.parse import unquote

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.errors import DealerError
from dealer.gateway.clients import ClientConnection, Endpoint
from dealer.gateway.net.responses import PAGE, allowing, framing, page_policy, response, root_from
from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.pages.error_pages import ErrorPages, refusal_of
from dealer.gateway.pages.feed import FeedAnswers
from dealer.gateway.pages.self_contained_page import audit_page
from dealer.gateway.pages.static_files import KINDS, REVALIDATE, File, StaticFiles
from dealer.gateway.pages.table_downloads import TableDownloads
from dealer.gateway.posts import PATH as RPC_PATH
from dealer.gateway.posts import method_refused
from dealer.gateway.session.context import GatewayContext
from dealer.packs.catalogue import Catalogue
from dealer.service.tables.archive import ArchiveRecord

PAGES = {"/": "lobby", "/audit": "audit", "/finished": "finished"}
TABLE_PAGES = {"": "table", "/audit": "audit", "/broadcast": "broadcast", "/history": "history"}
FEED = "/feed"
AUDIT_FILE = "/audit.html"

_HASHED = re.compile(r"/web/(?P<folder>[0-9a-f]{16})/(?P<path>[\w./-]+)")
_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?P<what>/[\w.-]+)?")
_FOLLOWED = re.compile(
    r"(?P<table>/tables/[0-9a-f]{32}"
    r"(?:/(?:audit|broadcast|bundle\.jsonl|history(?:\.[a-z]+)?|round-[0-9]+\.[a-z]+))?)"
    r"(?:[^0-9A-Za-z/].*|/[^0-9A-Za-z]*)?|(?P<page>/(?:audit|finished)?)[^0-9A-Za-z]+",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
"""An address and what the text around it left at its end, such as a full stop or a bracket."""


class Router(Endpoint):
    """Answers every HTTP request that is no WebSocket handshake.

    `documents` are JSON documents by path, each made on its first request; those of `catalogue` are
    among them. `web` are the files of the pages. `frame_ancestors` are the origins whose pages may
    show these pages in a frame. `path` is the path under which clients reach this server; the
    targets of requests are without it.
    """

    def __init__(
        self,
        context: GatewayContext,
        admit: Callable[[ClientConnection, Request], Response | None],
        *,
        documents: Mapping[str, Callable[[], bytes]],
        catalogue: Catalogue,
        frame_ancestors: Sequence[str],
        appearance: Appearance,
        web: StaticFiles,
        path: str,
    ) -> None:
        super().__init__(context, admit)
        self._error_pages = ErrorPages(appearance, frame_ancestors)
        self._path = path
        self._service = context.service
        self._documents = documents
        self._document_files: dict[str, File] = {}
        self._downloads = TableDownloads(context, catalogue, path=path)
        self._feed = FeedAnswers(context.service)
        self._appearance = appearance
        self._web = web
        self._page_policy = page_policy(frame_ancestors)
        self._framing = framing(frame_ancestors)

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        refusal = super().check(connection, request)
        return None if refusal is None else self._error_pages.instead_of(request, refusal)

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        self.answer_later(connection, partial(self._make, connection, request))

    async def _make(self, connection: ClientConnection, request: Request) -> Response | None:
        try:
            answer = await self.answer(connection, request)
        except Exception as error:
            self._context.log_throttle.say_error(error, "internal error", what="no answer")
            sentence = "Internal error; see the server's log.\n"
            answer = response(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        return answer and self._error_pages.instead_of(request, answer)

    async def answer(self, connection: ClientConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] == RPC_PATH:
            return method_refused(request)
        if request.method == "OPTIONS":
            return allowing("GET, HEAD, OPTIONS")
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
            found = self._web.find(request, match["folder"], match["path"])
            return found or self._not_found(request)
        if match := _TABLE.fullmatch(path):
            return await self._of_table(connection, request, match["table"], match["what"] or "")
        return self._not_found(request)

    @cached_property
    def _audit_file(self) -> File:
        return File(self._appearance.warn(audit_page().page.decode()).encode(), PAGE)

    def _document(self, path: str) -> File:
        if path not in self._document_files:
            self._document_files[path] = File(self._documents[path](), KINDS[".json"])
        return self._document_files[path]

    def _not_found(self, request: Request) -> Response:
        """404, or the way to the address with which this one begins; its fragment is kept."""
        path, mark, query = request.path.partition("?")
        followed = _FOLLOWED.fullmatch(unquote(path))
        if followed and (meant := (followed["table"] or followed["page"]).lower()) != path:
            where = f"{root_from(path)}{meant[1:]}{mark}{query}"
            return response(HTTPStatus.PERMANENT_REDIRECT, b"", Location=where)
        return response(
            HTTPStatus.NOT_FOUND,
            "There is nothing at this address; look for a mistake in it, or start from the list "
            "of all tables.\n",
        )

    def _page(self, request: Request, name: str) -> Response:
        root = root_from(request.path.partition("?")[0])
        return self._web.page(name, root=root).answer(
            request, caching=REVALIDATE, Content_Security_Policy=self._page_policy
        )

    async def _of_table(
        self, connection: ClientConnection, request: Request, table: str, what: str
    ) -> Response | None:
        found = await self._downloads.find(table, what)
        if what in TABLE_PAGES:
            if isinstance(found, ArchiveRecord):
                self._service.archive.find(found)
            return self._page(request, TABLE_PAGES[what])
        if not self._downloads.has(what):
            return self._not_found(request)
        return await self._downloads.answer(connection, request, table, what, found)
