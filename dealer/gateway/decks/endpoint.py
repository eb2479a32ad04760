"""`/api/deck/…`: the HTTP side of decks, as GET or POST, for pages of every origin.

Each answer is JSON with `success`, and where it is false with `error`; and it has the address of
the deck's proof. Statuses: 200 and 404 as in the original, 400 for a parameter that is wrong, 401,
403, 405, 409 where another client changed the deck at the same time, 421, 429, 500 and 503.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from http import HTTPStatus
from math import ceil
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

from websockets.http11 import Request, Response

from dealer.errors import (
    BadRequest,
    DealerError,
    NotEntitled,
    RateLimited,
    Refused,
    TableArchived,
    TableIsClosed,
    UnknownTable,
)
from dealer.gateway.decks import operations, piles
from dealer.gateway.decks.deck import NotFound
from dealer.gateway.decks.deck_request import DeckRequest, Members
from dealer.gateway.decks.parameters import OriginalError, Parameters
from dealer.gateway.decks.paths import Target, target_of
from dealer.gateway.decks.pictures import FOLDER, picture
from dealer.gateway.decks.tables import DeckTables, OpenDeck
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.exchange import PostExchange
from dealer.gateway.http.responses import response
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.rpc.context import GatewayContext

JSON = "application/json"
METHODS = "GET, POST, OPTIONS"
PICTURE_METHODS = "GET, HEAD, OPTIONS"
NO_DECK = "Deck ID does not exist."
PREFLIGHT = {
    "Access_Control_Allow_Methods": METHODS,
    "Access_Control_Allow_Headers": "accept, authorization, content-type, user-agent, "
    "x-csrftoken, x-requested-with",
    "Access_Control_Max_Age": "86400",
}
PICTURES_SECONDS = 86_400
NONE: Mapping[str, Any] = MappingProxyType({})


class Operation(NamedTuple):
    """What a path does, and the parameters that it knows."""

    run: Callable[[DeckRequest], Awaitable[Members]]
    parameters: tuple[str, ...] = ()


CONTENTS = ("deck_count", "jokers_enabled", "cards")
OPERATIONS = {
    "new": Operation(partial(operations.new, shuffle=False), CONTENTS),
    "new.shuffle": Operation(partial(operations.new, shuffle=True), CONTENTS),
    "new.draw": Operation(operations.new_draw, ("count", *CONTENTS)),
    "info": Operation(operations.info),
    "shuffle": Operation(operations.shuffle, ("remaining", *CONTENTS)),
    "draw": Operation(operations.draw, ("count", "cards")),
    "return": Operation(operations.return_drawn, ("cards",)),
    "close": Operation(operations.close),
    "pile.add": Operation(piles.pile_add, ("cards",)),
    "pile.list": Operation(piles.pile_list),
    "pile.shuffle": Operation(piles.pile_shuffle),
    "pile.return": Operation(piles.pile_return, ("cards",)),
    "pile.draw": Operation(piles.pile_draw, ("cards", "count")),
}
"""By the name of the operation in a path, see `paths.py`."""


class DecksEndpoint:
    """Answers requests below `/api/` and for pictures of cards.

    `check` admits or refuses a request by its head. `path` is the path under which clients reach
    this server, for the addresses in answers.
    """

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
        self._tables = DeckTables(context)

    def exchange(self, connection: ClientConnection) -> PostExchange:
        """The exchange of a request that begins on this connection."""
        return PostExchange(
            connection,
            partial(self._check_head, connection),
            partial(self._run, connection),
            count=lambda status: None,
        )

    def _check_head(self, connection: ClientConnection, request: Request) -> Response | None:
        refusal = self._check(connection, request)
        return None if refusal is None else _restated(refusal)

    def _run(
        self, connection: ClientConnection, exchange: PostExchange, request: Request, body: bytes
    ) -> None:
        path, method = request.path.partition("?")[0], request.method
        if method == "OPTIONS":
            exchange.answer(_json(HTTPStatus.OK, b"", **PREFLIGHT))
        elif path.startswith(FOLDER):
            exchange.answer(_picture(path, method))
        elif method not in ("GET", "POST"):
            exchange.answer(_not_allowed("Use GET or POST.", METHODS))
        elif (target := target_of(path)) is None:
            sentence = f"There is no such path; see {self._path}api/deck/new/ for a deck."
            exchange.answer(_failed(HTTPStatus.NOT_FOUND, sentence))
        else:
            self._context.in_flight += 1
            work = partial(self._operate, connection, request, target, body)
            self._context.broadcaster.start_task(self._answer(exchange, work, connection))

    async def _answer(
        self,
        exchange: PostExchange,
        work: Callable[[], Coroutine[Any, Any, Response]],
        connection: ClientConnection,
    ) -> None:
        try:
            answer = await metered(work, connection.budget.cpu)
            exchange.answer(answer, close=self._context.draining)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._context.in_flight -= 1

    async def _operate(
        self, connection: ClientConnection, request: Request, target: Target, body: bytes
    ) -> Response:
        begun, outcome = perf_counter(), "ok"
        method = f"decks.{target.operation}"
        seen = connection.seen
        base = f"{seen.scheme}://{seen.host or 'localhost'}{self._path}".removesuffix("/")
        deck_request: DeckRequest | None = None
        try:
            operation = OPERATIONS[target.operation]
            given = Parameters.read(request, body)
            given.require(operation.parameters, target.deck)
            deck_request = DeckRequest(
                self._tables, connection, target, given, base + FOLDER.rstrip("/")
            )
            members = await operation.run(deck_request)
            members |= _proof(deck_request.opened, base)
            answer = _json(HTTPStatus.OK, json.dumps(members))
        except DealerError as error:
            outcome = error.reason if isinstance(error, Refused) else "unavailable"
            opened = None if deck_request is None else deck_request.opened
            answer = _refused(error, _proof(opened, base))
        except Exception as error:
            self._context.log_throttle.say_error(error, "internal error", method=method)
            outcome = "internal"
            sentence = "Internal error; see the server's log."
            answer = _failed(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        self._context.metrics.answered(method, outcome, perf_counter() - begun)
        return answer


def _proof(opened: OpenDeck | None, base: str) -> Members:
    """The addresses of a deck's proof, and what it covers so far."""
    if opened is None:
        return {}
    table = opened.live_table.table
    address = f"{base}/tables/{opened.live_table.table_id}"
    return {
        "proof": f"{address}/audit",
        "proof_bundle": f"{address}/bundle.jsonl",
        "proof_covers": _covered(table.round is not None, len(table.round_versions)),
    }


def _covered(is_open: bool, number: int) -> str:
    if not is_open:
        return "everything: all rounds are closed, and their secrets are published"
    earlier = {1: "", 2: "round 1; "}.get(number, f"rounds 1 to {number - 1}; ")
    return (
        f"{earlier}of the open round {number} the log and the commitment to its secret, which is "
        "published when all cards are shuffled again or the deck is closed (/close/)"
    )


def _failed(
    status: HTTPStatus, sentence: str, members: Mapping[str, Any] = NONE, **more: str
) -> Response:
    body = {"success": False, "error": sentence, **members}
    return _json(status, json.dumps(body), **more)


def _refused(error: DealerError, proof: Members) -> Response:
    """The answer to a request that raised this error."""
    match error:
        case OriginalError():
            status = HTTPStatus.OK
        case UnknownTable():
            return _failed(HTTPStatus.NOT_FOUND, NO_DECK)
        case TableIsClosed() | TableArchived():
            return _failed(HTTPStatus.NOT_FOUND, f"{NO_DECK} It was closed.", proof)
        case NotFound():
            status = HTTPStatus.NOT_FOUND
        case BadRequest():
            status = HTTPStatus.BAD_REQUEST
        case NotEntitled():
            status = HTTPStatus.FORBIDDEN
        case RateLimited(retry_after_ms=milliseconds):
            seconds = str(ceil(milliseconds / 1000))
            return _failed(HTTPStatus.TOO_MANY_REQUESTS, str(error), proof, Retry_After=seconds)
        case Refused(temporary=False):
            status = HTTPStatus.CONFLICT
        case Refused():
            return _failed(HTTPStatus.SERVICE_UNAVAILABLE, str(error), proof, Retry_After="5")
        case _:
            sentence = "The log cannot be read or written at the moment; try again later."
            return _failed(HTTPStatus.SERVICE_UNAVAILABLE, sentence, Retry_After="5")
    return _failed(status, str(error), proof)


def _restated(refusal: Response) -> Response:
    """A refusal with the same status and headers, as JSON."""
    more = {
        name.replace("-", "_"): refusal.headers[name]
        for name in ("Retry-After", "WWW-Authenticate")
        if name in refusal.headers
    }
    sentence = bytes(refusal.body or b"").decode().strip()
    return _failed(HTTPStatus(refusal.status_code), sentence, NONE, **more)


def _not_allowed(sentence: str, methods: str) -> Response:
    return _failed(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow=methods)


def _picture(path: str, method: str) -> Response:
    found = picture(path.removeprefix(FOLDER))
    if method not in ("GET", "HEAD"):
        return _not_allowed("Use GET or HEAD.", PICTURE_METHODS)
    if found is None:
        return _failed(HTTPStatus.NOT_FOUND, "There is no such picture.")
    data, kind = found
    caching = f"public, max-age={PICTURES_SECONDS}"
    return response(
        HTTPStatus.OK, data, kind=kind, Cache_Control=caching, Access_Control_Allow_Origin="*"
    )


def _json(status: HTTPStatus, body: str | bytes, **more: Any) -> Response:
    return response(status, body, kind=JSON, Access_Control_Allow_Origin="*", **more)
