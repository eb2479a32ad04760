"""What a browser sees: the tables, one table as a spectator sees it, and its bundle to take home.

No script, no cookie; every text that a guest chose is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from typing import Any

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.errors import BadToken, DealerError, Refused
from dealer.game.view import SPECTATOR
from dealer.gateway.connection import GuestConnection
from dealer.gateway.http import PAGE, response, stream, without_body
from dealer.service import Resident, Service

BUNDLE = "application/jsonl; charset=utf-8"

_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?P<bundle>/bundle\.jsonl)?")
_BEARER = re.compile(r"Bearer +(?P<token>[!-~]+)", re.IGNORECASE)
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}pre{overflow-x:auto}"
    "td,th{padding:.2rem .8rem .2rem 0;text-align:left}"
)


class Pages:
    """Answers every HTTP request that does not ask for a WebSocket."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def answer(self, connection: GuestConnection, request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD"):
            return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered here.\n")
        try:
            answer = await self._find(connection, request)
        except MultipleValuesError:
            return response(HTTPStatus.BAD_REQUEST, "A header stands twice in the request.\n")
        except BadToken as error:
            return response(HTTPStatus.UNAUTHORIZED, f"{error}\n", WWW_Authenticate="Bearer")
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
        if path == "/":
            return _page("Tables", _lobby(await self._service.tables()))
        match = _TABLE.fullmatch(path)
        if match is None:
            sentence = "There is nothing at this address; the tables are listed at /.\n"
            return response(HTTPStatus.NOT_FOUND, sentence)
        resident = await self._service.load(match["table"])
        if match["bundle"]:
            return await self._bundle(connection, request, resident)
        if not resident.table.rules.watched:
            return _page("A private table", "<p>This table is not open to spectators.</p>")
        seen = await self._service.snapshot(resident, SPECTATOR)
        host = request.headers.get("Host", "localhost")
        return _page(_title(seen.state), _table(resident, seen.state, host))

    async def _bundle(
        self, connection: GuestConnection, request: Request, resident: Resident
    ) -> Response | None:
        if not resident.table.rules.watched:
            given = _BEARER.fullmatch(request.headers.get("Authorization", ""))
            token = "" if given is None else given["token"]
            self._service.tokens.actor(resident.id, resident.table, token)
        if request.method == "HEAD":
            return response(HTTPStatus.OK, b"", kind=BUNDLE)
        await stream(connection, request, self._service.bundle(resident), kind=BUNDLE)
        return None


def _page(title: str, body: str) -> Response:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"</head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )
    return response(HTTPStatus.OK, text, kind=PAGE)


def _title(state: Mapping[str, Any]) -> str:
    name = state["rules"].get("name")
    return name if isinstance(name, str) and name else "A table"


def _lobby(tables: list[dict[str, Any]]) -> str:
    if not tables:
        return "<p>No table is open.</p>"
    rows = "".join(
        f'<tr><td><a href="/tables/{escape(table["table"])}">{escape(table["name"] or "a table")}'
        f"</a></td><td>{table['taken']}</td><td>{table['rounds']}</td></tr>"
        for table in tables
    )
    return f"<table><tr><th>Table</th><th>Players</th><th>Rounds</th></tr>{rows}</table>"


_SIT_DOWN = """\
import asyncio, dealer

async def main():
    async with dealer.connect("ws://{host}/ws/{table}", name="me") as house:
        table = await house.join("{table}")
        print(table.seats)

asyncio.run(main())"""


def _table(resident: Resident, state: Mapping[str, Any], host: str) -> str:
    table = resident.table_id
    seats = "".join(
        f"<tr><td>{seat['seat']}</td><td>{escape(seat['name'])}</td>"
        f"<td>{_count(state, 'hand:' + str(seat['seat']))}</td></tr>"
        for seat in state["seats"]
    )
    round_ = state.get("round")
    stacks = [name for name in (round_ or {"stacks": {}})["stacks"] if name[:5] != "hand:"]
    lying = "".join(
        f"<tr><td>{escape(name)}</td><td>{_count(state, name)}</td></tr>" for name in stacks
    )
    playing = "No round is open." if round_ is None else f"Round {round_['round']} is open."
    example = escape(_SIT_DOWN.format(host=host, table=table))
    sit_down = f"<p>Sit down from Python:</p><pre>{example}</pre>"
    if state["closed"]:
        playing, sit_down = "The table is closed.", ""
    return (
        f"<p>{playing} Version {state['version']}.</p>"
        f"<table><tr><th>Seat</th><th>Player</th><th>Cards</th></tr>{seats}</table>"
        + (f"<table><tr><th>Stack</th><th>Cards</th></tr>{lying}</table>" if lying else "")
        + f'<p><a href="/tables/{table}/bundle.jsonl">The log, to verify it yourself</a></p>'
        + sit_down
    )


def _count(state: Mapping[str, Any], stack: str) -> int:
    round_ = state.get("round")
    return 0 if round_ is None else len(round_["stacks"].get(stack, ()))
