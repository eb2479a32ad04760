"""What is at which address: the pages, the tables' bundles, and the files for other people's code.

The pages are the same for everybody and hold nothing about anybody; what is on a table comes over
the websocket, to who may see it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cached_property, partial
from http import HTTPStatus
from math import ceil

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.errors import (
    BadToken,
    DealerError,
    Overloaded,
    RateLimited,
    Refused,
    TableArchived,
    Unavailable,
)
from dealer.game.state import Table
from dealer.gateway.askers import Askers, Crowded
from dealer.gateway.connection import GuestConnection
from dealer.gateway.costs import COMMIT
from dealer.gateway.histories import Histories
from dealer.gateway.http import PAGE, blocks_of, response, stream, without_body
from dealer.gateway.onefile import audit_page
from dealer.gateway.rate_limit import BUSY, WRITTEN, rate_limited
from dealer.gateway.static import ASK_AGAIN, File, Web
from dealer.service import Resident, Service, archived
from dealer.service.archived import Kept

JSONL = "application/jsonl; charset=utf-8"

PAGES = {"/": "lobby", "/audit": "audit"}
OF_A_TABLE = {"": "table", "/audit": "audit"}
BUNDLE = "/bundle.jsonl"
FOR_EVERYBODY = {"/client.js", "/client.d.ts", "/verify.js"}
"""Addresses that stay the same over versions, for programs of other origins, too."""

DESCRIBED = {"/openrpc.json", "/asyncapi.json"}
ONE_FILE = "/audit.html"

_HASHED = re.compile(r"/web/(?P<folder>[0-9a-f]{16})/(?P<path>[\w./-]+)")
_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?P<what>/[\w.-]+)?")
_BEARER = re.compile(r"Bearer +(?P<token>[!-~]+)", re.IGNORECASE)


class Pages:
    """Answers every HTTP request that does not ask for a WebSocket."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reading = asyncio.Lock()  # a part of one download at a time, see `blocks_of`
        self._histories = Histories(self._reading)
        self._askers = Askers("archived bundles")
        self._web = Web()

    async def answer(self, connection: GuestConnection, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered here.\n")
        try:
            answer = await self._find(connection, request)
        except MultipleValuesError:
            return response(HTTPStatus.BAD_REQUEST, "A header stands twice in the request.\n")
        except BadToken as error:
            return response(HTTPStatus.UNAUTHORIZED, f"{error}\n", WWW_Authenticate="Bearer")
        except TableArchived as error:
            return response(HTTPStatus.GONE, f"{error}\n")
        except Crowded as error:
            return error.answer()
        except RateLimited as error:
            seconds = str(ceil(error.retry_after_ms / 1000))
            status = HTTPStatus.SERVICE_UNAVAILABLE
            return response(status, f"{error}\n", Retry_After=seconds)
        except (Overloaded, Unavailable) as error:
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n", Retry_After="5")
        except Refused as error:
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")
        except DealerError:
            sentence = "The log cannot be read just now; try again later.\n"
            return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
        if answer is not None and request.method == "HEAD":
            return without_body(answer)
        return answer

    async def _find(self, connection: GuestConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        if path in PAGES:
            return self._page(request, PAGES[path])
        if path in FOR_EVERYBODY:
            file = self._web.files[path[1:]]
            return file.answer(request, caching=ASK_AGAIN, Access_Control_Allow_Origin="*")
        if path in DESCRIBED:
            return _described(request, path)
        if path == ONE_FILE:
            policy = f"{audit_page().policy}; frame-ancestors 'none'"
            return self._one_file.answer(request, caching=ASK_AGAIN, Content_Security_Policy=policy)
        if match := _HASHED.fullmatch(path):
            return self._web.find(request, match["folder"], match["path"]) or _nothing_here()
        if match := _TABLE.fullmatch(path):
            return await self._of_table(connection, request, match["table"], match["what"] or "")
        return _nothing_here()

    @cached_property
    def _one_file(self) -> File:
        return File(audit_page().page, PAGE)

    def _page(self, request: Request, name: str) -> Response:
        return self._web.page(name).answer(request, caching=ASK_AGAIN)

    async def _of_table(
        self, connection: GuestConnection, request: Request, table: str, what: str
    ) -> Response | None:
        try:
            resident = await self._service.load(table)
        except TableArchived:
            return await self._of_archived(connection, request, table, what)
        if what in OF_A_TABLE:
            return self._page(request, OF_A_TABLE[what])
        if what == BUNDLE or self._histories.has(what):
            self._check_watcher(request, resident)
            _require_paid(connection)
            lines = self._service.bundle(resident, writing=partial(_pay, connection))
            events = resident.committed
            return await self._told(connection, request, lines, what, events=events)
        return _nothing_here()

    def _check_watcher(self, request: Request, resident: Resident) -> None:
        """Raise BadToken unless what is played at the table is for whoever asks here."""
        if not resident.table.rules.watched:
            self._require_token(request, resident.id, resident.table)

    async def _of_archived(
        self, connection: GuestConnection, request: Request, table: str, what: str
    ) -> Response | None:
        """What is left of an archived table: its bundle, what was played, and who checks it."""
        kept = await archived.find(self._service.log, bytes.fromhex(table))
        if kept is None or what == "":
            raise TableArchived(
                "This table is closed and archived. Its bundle, where this house still has it, is "
                f"at /tables/{table}/bundle.jsonl"
            )
        if what in OF_A_TABLE:
            self._service.shelf.find(kept)
            return self._page(request, OF_A_TABLE[what])
        if what == BUNDLE or self._histories.has(what):
            _require_paid(connection)
            with self._askers.admitted(connection.address):  # each reads a whole file twice
                lines = self._kept(request, table, kept)
                return await self._told(connection, request, lines, what, events=kept.size)
        return _nothing_here()

    async def _kept(self, request: Request, table: str, kept: Kept) -> AsyncGenerator[str]:
        """The lines of an archived bundle; BadToken unless they are for whoever asks here."""
        with await self._service.shelf.open(kept) as file:
            state = await asyncio.to_thread(archived.beginning_in, file)
            if not state.rules.watched:
                state = await asyncio.to_thread(archived.table_in, file)
                self._require_token(request, bytes.fromhex(table), state)
            async for line in archived.lines_of(file):
                yield line

    async def _told(
        self,
        connection: GuestConnection,
        request: Request,
        lines: AsyncGenerator[str],
        what: str,
        *,
        events: int,
    ) -> Response | None:
        """The bundle of these lines, with so many events, or the history that they make."""
        if what != BUNDLE:
            histories = self._histories
            return await histories.answer(connection, request, lines, what, events=events)
        if request.method == "HEAD":
            async with aclosing(lines):
                await anext(lines)  # what cannot be read, or not by everybody, is not there
            return response(HTTPStatus.OK, b"", kind=JSONL)
        await stream(connection, request, blocks_of(lines, self._reading), kind=JSONL)
        return None

    def _require_token(self, request: Request, table: bytes, state: Table) -> None:
        given = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        token = "" if given is None else given["token"]
        self._service.tokens_of(state.key).actor(table, state, token)


def _pay(connection: GuestConnection) -> None:
    """Charge a checkpoint that a download writes; RateLimited if the address may not."""
    wait = connection.budget.pay(COMMIT, connection.door.floor.clock())
    if wait:
        raise rate_limited(WRITTEN, wait)


def _require_paid(connection: GuestConnection) -> None:
    """RateLimited while the address owes for the time that it had."""
    wait = connection.budget.busy(connection.door.floor.clock())
    if wait:
        raise rate_limited(BUSY, wait)


def _described(request: Request, path: str) -> Response:
    """What programs read to know the house; it is made when the first one asks, not before."""
    from dealer.gateway import described

    file = described.file(path)
    return file.answer(request, caching=ASK_AGAIN, Access_Control_Allow_Origin="*")


def _nothing_here() -> Response:
    sentence = "There is nothing at this address; the tables are listed at /.\n"
    return response(HTTPStatus.NOT_FOUND, sentence)
