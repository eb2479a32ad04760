"""`/api/deck/…`: the HTTP side of decks, as GET or POST, for pages of every origin.

Each answer is JSON with `success`, and where it is false with `error`; and it has the address of
the deck's proof. Statuses: 200 and 404 as in the original, 400 for a parameter that is wrong, 401,
403, 405, 409 where another client changed the deck at the same time, 421, 429, 500 and 503.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from math import ceil
from time import perf_counter
from typing import Any

from websockets.http11 import Request, Response

from dealer import errors
from dealer.gateway.clients import ClientConnection
from dealer.gateway.decks.cards import picture
from dealer.gateway.decks.deck import Deck, Decks, NotFound
from dealer.gateway.decks.operations import OPERATIONS, DeckRequest, Members, Operation, opened_with
from dealer.gateway.decks.parameters import OriginalError, Parameters
from dealer.gateway.net.responses import response
from dealer.gateway.pages.static_files import KINDS
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.rpc.context import GatewayContext

PICTURES = "/static/img/"
CACHING = "public, max-age=86400"
METHODS = {PICTURES: ("GET", "HEAD"), "/api/": ("GET", "POST")}
NO_DECK = "Deck ID does not exist."
PREFLIGHT = {
    "Access_Control_Allow_Methods": "GET, POST, OPTIONS",
    "Access_Control_Allow_Headers": "accept, authorization, content-type, user-agent, "
    "x-csrftoken, x-requested-with",
    "Access_Control_Max_Age": "86400",
}
STATUSES: dict[type[errors.DealerError], HTTPStatus] = {
    OriginalError: HTTPStatus.OK,
    NotFound: HTTPStatus.NOT_FOUND,
    errors.UnknownTable: HTTPStatus.NOT_FOUND,
    errors.TableIsClosed: HTTPStatus.NOT_FOUND,
    errors.TableArchived: HTTPStatus.NOT_FOUND,
    errors.BadRequest: HTTPStatus.BAD_REQUEST,
    errors.NotEntitled: HTTPStatus.FORBIDDEN,
    errors.RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
}
"""The first that an error is; another one is 409, or 503 if it is temporary."""


class DecksEndpoint:
    """Answers requests below `/api/` and for pictures of cards.

    `check` admits or refuses a request by its head. `path` is the path under which clients reach
    this server, for the addresses in answers.
    """

    keeps = True

    def __init__(
        self,
        context: GatewayContext,
        check: Callable[[ClientConnection, Request], Response | None],
        *,
        path: str,
    ) -> None:
        self._context = context
        self._check = check
        self._path = path
        self._decks = Decks(context)

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        """A refusal with its status and headers, as JSON."""
        refusal = self._check(connection, request)
        if refusal is None:
            return None
        names = {"Retry-After", "WWW-Authenticate"}.intersection(refusal.headers)
        more = {name.replace("-", "_"): refusal.headers[name] for name in names}
        sentence = bytes(refusal.body or b"").decode().strip()
        return _failed(HTTPStatus(refusal.status_code), sentence, **more)

    def count(self, status: int) -> None: ...

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        path, method = request.path.partition("?")[0], request.method
        pictures = path.startswith(PICTURES)
        methods = METHODS[PICTURES if pictures else "/api/"]
        if method == "OPTIONS":
            connection.answer(_json(HTTPStatus.OK, b"", **PREFLIGHT))
        elif method not in methods:
            allowed = {"Allow": ", ".join((*methods, "OPTIONS"))}
            sentence = f"Use {' or '.join(methods)}."
            connection.answer(_failed(HTTPStatus.METHOD_NOT_ALLOWED, sentence, **allowed))
        elif pictures:
            file = picture(path.removeprefix(PICTURES))
            connection.answer(
                _failed(HTTPStatus.NOT_FOUND, "There is no such picture.")
                if file is None
                else file.answer(request, caching=CACHING, Access_Control_Allow_Origin="*")
            )
        elif found := next(filter(None, (one.match(path) for one in OPERATIONS)), None):
            self._context.in_flight += 1
            work = partial(self._operate, connection, request, body, *found)
            self._context.broadcaster.start_task(self._answer(connection, work))
        else:
            sentence = f"There is no such path; see {self._path}api/deck/new/ for a deck."
            connection.answer(_failed(HTTPStatus.NOT_FOUND, sentence))

    async def _answer(
        self,
        connection: ClientConnection,
        work: Callable[[], Coroutine[Any, Any, Response]],
    ) -> None:
        try:
            answer = await metered(work, connection.budget.cpu)
            connection.answer(answer, close=self._context.draining)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._context.in_flight -= 1

    async def _operate(
        self,
        connection: ClientConnection,
        request: Request,
        body: bytes,
        operation: Operation,
        path: dict[str, str],
    ) -> Response:
        begun, outcome, method = perf_counter(), "ok", f"decks.{operation.name}"
        seen, id = connection.seen, path.get("deck") or path.get("old", "")
        base = f"{seen.scheme}://{seen.host or 'localhost'}{self._path}".removesuffix("/")
        deck: Deck | None = None
        try:
            given = Parameters(request, body)
            given.require(operation.parameters, id)
            if operation.opens is None:
                deck = await self._decks.find(connection, id)
                if deck.table.closed:
                    raise errors.TableIsClosed("This deck is closed.")
            else:
                codes, decks = opened_with(given)
                deck = await self._decks.open(connection, codes, decks, shuffle=operation.opens)
            where, images = path.get("where", "").lower(), base + PICTURES.rstrip("/")
            asked = DeckRequest(deck, given, path.get("pile", ""), where, images)
            members = {"success": True, "deck_id": deck.id} | await operation.run(asked)
            answer = _json(HTTPStatus.OK, json.dumps(members | _proof(deck, base)))
        except errors.DealerError as error:
            outcome = error.reason if isinstance(error, errors.Refused) else "unavailable"
            answer = _refused(error, _proof(deck, base))
        except Exception as error:
            self._context.log_throttle.say_error(error, "internal error", method=method)
            outcome, sentence = "internal", "Internal error; see the server's log."
            answer = _failed(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        self._context.metrics.answered(method, outcome, perf_counter() - begun)
        return answer


def _proof(deck: Deck | None, base: str) -> Members:
    """The addresses of a deck's proof, and what it covers so far."""
    if deck is None:
        return {}
    address, number = f"{base}/tables/{deck.live_table.table_id}", len(deck.table.round_versions)
    covers = "everything: all rounds are closed, and their secrets are published"
    if deck.table.round is not None:
        earlier = {1: "", 2: "round 1; "}.get(number, f"rounds 1 to {number - 1}; ")
        covers = (
            f"{earlier}of the open round {number} the log and the commitment to its secret, which "
            "is published when all cards are shuffled again or the deck is closed (/close/)"
        )
    return {
        "proof": f"{address}/audit",
        "proof_bundle": f"{address}/bundle.jsonl",
        "proof_covers": covers,
    }


def _refused(error: errors.DealerError, proof: Members) -> Response:
    """The answer to a request that raised this error."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), None)
    sentence, more = str(error), {}
    if isinstance(error, errors.UnknownTable):
        sentence = NO_DECK
    elif isinstance(error, errors.TableIsClosed | errors.TableArchived):
        sentence = f"{NO_DECK} It was closed."
    elif isinstance(error, errors.RateLimited):
        more = {"Retry_After": str(ceil(error.retry_after_ms / 1000))}
    elif not isinstance(error, errors.Refused):
        sentence = "The log cannot be read or written at the moment; try again later."
    if status is None and isinstance(error, errors.Refused) and not error.temporary:
        status = HTTPStatus.CONFLICT
    elif status is None:
        status, more = HTTPStatus.SERVICE_UNAVAILABLE, {"Retry_After": "5"}
    return _json(status, json.dumps({"success": False, "error": sentence} | proof), **more)


def _failed(status: HTTPStatus, sentence: str, **more: str) -> Response:
    return _json(status, json.dumps({"success": False, "error": sentence}), **more)


def _json(status: HTTPStatus, body: str | bytes, **more: str) -> Response:
    kind = KINDS[".json"]
    return response(status, body, kind=kind, Access_Control_Allow_Origin="*", **more)
