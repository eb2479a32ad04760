"""`/api/deck/…`: the HTTP side of decks, as GET or POST, for pages of every origin.

Each answer is JSON with `success`, and, if that is false, `error`; and it has the address of
the deck's proof. Statuses: 200 and 404 as in the original, 400 for a parameter that is wrong, 401,
403, 405, 409 if another client changed the deck at the same time, 421, 429, 500 and 503.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import NamedTuple
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from websockets.http11 import Request, Response

from dealer import errors
from dealer.gateway.clients import ClientConnection, Endpoint
from dealer.gateway.decks.deck import Deck, Members
from dealer.gateway.decks.parameters import OriginalError, Parameters, picture
from dealer.gateway.net.responses import response
from dealer.gateway.pages.error_pages import refusal_of
from dealer.gateway.pages.static_files import KINDS, StaticFiles
from dealer.gateway.rate_limit import costs
from dealer.gateway.session.context import GatewayContext
from dealer.service import LiveTable
from dealer.service.tables.decks import DeckNotes, deck_key, deck_rules, new_deck_id
from dealer.service.tables.table_ids import id_and_key

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


class Operation(NamedTuple):
    """What a path does, and the parameters that it knows.

    `opens` says that it opens a deck, and whether it shuffles it; None: it is about a deck.
    """

    name: str
    path: str
    run: Callable[[Deck], Awaitable[Members]]
    parameters: tuple[str, ...] = ()
    opens: bool | None = None

    def match(self, path: str) -> tuple[Operation, dict[str, str]] | None:
        """This, and the parts of a path by name, if it is one of the operation's."""
        found = re.fullmatch(self.path, path)
        parts = {} if found is None else found.groupdict("")
        return found and (self, {name: unquote(part) for name, part in parts.items()})


_DECK = "/api/deck/(?P<deck>[^/]+)"
_PILE = f"{_DECK}/pile/(?P<pile>[^/]+)"
_PILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}|")
_OLD = "(?P<old>[^/]+)"
_END = re.compile("(?:[0-9A-Fa-f]{2}%|[^0-9A-Za-z_-])*")
"""What may follow a path, read backwards: a slash, and what the text around an address left."""

_WHERE = "(?:/(?P<where>(?i:top|bottom|random)))?"
_NEW = ("deck_count", "jokers_enabled", "cards")

OPERATIONS = (
    Operation("new", "/api/(?:deck/)?new", Deck.info, _NEW, opens=False),
    Operation("new.shuffle", "/api/(?:deck/new/)?shuffle", Deck.info, _NEW, opens=True),
    Operation("new.draw", "/api/deck/new/draw", Deck.draw, ("count", *_NEW), opens=True),
    Operation("info", _DECK, Deck.info),
    Operation(
        "shuffle", f"{_DECK}/shuffle|/api/shuffle/{_OLD}", Deck.shuffle, ("remaining", *_NEW)
    ),
    Operation(
        "draw", f"{_DECK}/draw{_WHERE}|/api/draw/{_OLD}", Deck.draw_chosen, ("count", "cards")
    ),
    Operation("return", f"{_DECK}/return", Deck.give_back, ("cards",)),
    Operation("close", f"{_DECK}/close", Deck.close),
    Operation("pile.add", f"{_PILE}/add", Deck.add_to_pile, ("cards",)),
    Operation("pile.list", f"{_PILE}/list", Deck.list_pile),
    Operation("pile.shuffle", f"{_PILE}/shuffle", Deck.shuffle_pile),
    Operation("pile.return", f"{_PILE}/return", Deck.give_back, ("cards",)),
    Operation("pile.draw", f"{_PILE}/draw{_WHERE}", Deck.draw_chosen, ("cards", "count")),
)
"""In the order in which a path is compared with them."""


class DecksEndpoint(Endpoint):
    """Answers requests below `/api/` and for pictures of cards.

    `web` has the pictures. `path` is the path under which clients reach this server, for the
    addresses in answers.
    """

    keeps = True

    def __init__(
        self,
        context: GatewayContext,
        admit: Callable[[ClientConnection, Request], Response | None],
        web: StaticFiles,
        *,
        path: str,
    ) -> None:
        super().__init__(context, admit)
        self._web = web
        self._path = path
        self._notes: WeakKeyDictionary[LiveTable, DeckNotes] = WeakKeyDictionary()

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        refusal = super().check(connection, request)
        return None if refusal is None else _as_json(refusal)

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
            file = self._web.files.get(picture(path.removeprefix(PICTURES)))
            connection.answer(
                _failed(HTTPStatus.NOT_FOUND, "There is no such picture.")
                if file is None
                else file.answer(request, caching=CACHING, Access_Control_Allow_Origin="*")
            )
        elif found := next(filter(None, (one.match(_ended(path)) for one in OPERATIONS)), None):
            self._context.in_flight += 1
            self.answer_later(connection, partial(self._operate, connection, request, body, *found))
        else:
            sentence = f"There is no such path; see {self._path}api/deck/new/ for a deck."
            connection.answer(_failed(HTTPStatus.NOT_FOUND, sentence))

    async def _operate(
        self,
        connection: ClientConnection,
        request: Request,
        body: bytes,
        operation: Operation,
        path: dict[str, str],
    ) -> Response:
        begun, outcome, method = perf_counter(), "ok", f"decks.{operation.name}"
        id, budget = path.get("deck") or path.get("old") or new_deck_id(), connection.budget
        seen, table = connection.seen, None
        base = f"{seen.scheme}://{seen.host or 'localhost'}{self._path}".removesuffix("/")
        try:
            given = Parameters(request, body)
            given.require(operation.parameters, path.get("deck", ""))
            pile = path.get("pile", "")
            if not _PILE_NAME.fullmatch(pile):
                raise errors.BadRequest(
                    f"A pile's name is 1 to 32 of the letters a to z and A to Z, digits, _ and -, "
                    f"not {json.dumps(pile[:32], ensure_ascii=False)}."
                )
            if operation.opens is not None:
                table = await self._open(connection, id, given)
            else:
                service, key = self._context.service, deck_key(id)
                opened, _ = await id_and_key(key, service.log, service.keys, now=service.now())
                table = await service.lifecycle.load(opened.hex())
                if table.table.closed:
                    raise errors.TableIsClosed("This deck is closed.")
            notes = self._notes.setdefault(table, DeckNotes())
            where, images = path.get("where", "").lower(), base + PICTURES.rstrip("/")
            deck = Deck(self._context, table, budget, notes, given, pile, where, images)
            if operation.opens is not None:
                await deck.begin(shuffle=operation.opens)
            members = {"success": True, "deck_id": id} | await deck.run(operation.run)
            answer = _json(HTTPStatus.OK, json.dumps(members | _proof(table, base)))
        except errors.DealerError as error:
            outcome = error.reason if isinstance(error, errors.Refused) else "unavailable"
            answer = _refused(error, _proof(table, base))
        except Exception as error:
            self._context.log_throttle.say_error(error, "internal error", method=method)
            outcome, sentence = "internal", "Internal error; see the server's log."
            answer = _failed(HTTPStatus.INTERNAL_SERVER_ERROR, sentence)
        finally:
            self._context.in_flight -= 1
        self._context.metrics.answered(method, outcome, perf_counter() - begun)
        return answer

    async def _open(self, client: ClientConnection, id: str, given: Parameters) -> LiveTable:
        """The table of a new deck, without a round."""
        key, context = client.service_key, self._context
        given.opened_with()  # refused before there is a table
        if not context.players_open and (key is None or not key.may("open")):
            raise errors.NotEntitled(
                "On this server only services open decks: send a service key as "
                "`Authorization: Bearer KEY`."
            )
        decks = given.decks()
        rules = deck_rules(decks)
        written = costs.text_bytes_written(json.dumps(rules).encode())
        with client.budget.charged(written, context.clock(), decks=decks if key is None else 0):
            table, _ = await context.service.open_table(rules, key=deck_key(id), address="")
        return table


def _ended(path: str) -> str:
    """A path without what follows it."""
    following = _END.match(path[::-1])
    return path[: len(path) - following.end()] if following else path


def _proof(table: LiveTable | None, base: str) -> Members:
    """The addresses of a deck's proof, and what it covers so far."""
    if table is None:
        return {}
    address, number = f"{base}/tables/{table.table_id}", len(table.table.round_versions)
    covers = "everything: all rounds are closed, and their secrets are published"
    if table.table.round is not None:
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
    match error:
        case OriginalError():
            return _failed(error.status, str(error), proof)
        case errors.UnknownTable():
            return _failed(HTTPStatus.NOT_FOUND, NO_DECK, proof)
        case errors.TableIsClosed() | errors.TableArchived():
            return _failed(HTTPStatus.NOT_FOUND, f"{NO_DECK} It was closed.", proof)
        case errors.Refused(temporary=False):
            if not isinstance(error, errors.BadRequest | errors.NotEntitled):
                return _failed(HTTPStatus.CONFLICT, str(error), proof)
    return _as_json(refusal_of(error, limited=HTTPStatus.TOO_MANY_REQUESTS), proof)


def _as_json(refusal: Response, proof: Members | None = None, /) -> Response:
    """A refusal that is a text as an answer of this interface, with its status and headers."""
    kept = [name for name in ("Retry-After", "WWW-Authenticate") if name in refusal.headers]
    more = {name.replace("-", "_"): refusal.headers[name] for name in kept}
    sentence = bytes(refusal.body or b"").decode().strip()
    return _failed(HTTPStatus(refusal.status_code), sentence, proof, **more)


def _failed(
    status: HTTPStatus, sentence: str, proof: Members | None = None, /, **more: str
) -> Response:
    members = {"success": False, "error": sentence} | (proof or {})
    return _json(status, json.dumps(members), **more)


def _json(status: HTTPStatus, body: str | bytes, **more: str) -> Response:
    kind = KINDS[".json"]
    return response(status, body, kind=kind, Access_Control_Allow_Origin="*", **more)
