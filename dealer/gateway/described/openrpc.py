"""All methods of the house as an OpenRPC document, for tools that speak JSON-RPC."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from dealer.errors import BadRequest, Overloaded, RateLimited, Unavailable
from dealer.gateway import results as r
from dealer.gateway.described.examples import NONE, examples
from dealer.gateway.described.schemas import (
    METHODS,
    any_of,
    components,
    refusals,
    results_of,
    told_schema,
)
from dealer.gateway.described.words import CLOSES, FAULTS, NOTIFICATIONS, REFUSALS
from dealer.gateway.described.words import METHODS as SUMMARIES
from dealer.gateway.questions import PROTOCOL, version

ABOUT = (
    "A card dealer that players can check. One JSON-RPC 2.0 object is one text frame of a "
    f"WebSocket (subprotocol `{PROTOCOL}`, which may be left out) at `/ws`, or at `/ws/<table>` "
    "for one table; batches and binary frames are refused. What stands in a table's log comes as "
    "notifications: one for every version, so that a gap shows."
)
SERVERS = {
    "ws": "A house in the local network.",
    "wss": "A house behind a proxy that speaks TLS.",
}
HOST = {"default": "localhost:8080", "description": "name or address, and port, of the house"}

_ANYWHERE = {kind.reason for kind in (BadRequest, RateLimited, Overloaded, Unavailable)}


@cache
def document() -> r.Document:
    """The OpenRPC 1.3 document; it is made once."""
    return r.Document(
        openrpc="1.3.2",
        info={
            "title": "dealer",
            "version": version(),
            "description": ABOUT,
            "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
        },
        servers=[
            {"name": scheme, "url": scheme + "://{host}/ws", "summary": summary}
            | {"variables": {"host": HOST}}
            for scheme, summary in SERVERS.items()
        ],
        methods=[_method(name) for name in METHODS],
        components={"schemas": components(), "errors": _errors()},
        notifications=[
            {"name": name, "summary": summary, "params": told_schema(name)}
            for name, summary in NOTIFICATIONS.items()
        ],
        closes=[{"code": code, "meaning": meaning} for code, meaning in CLOSES.items()],
    )


@cache
def openrpc() -> bytes:
    """The same as JSON text."""
    return msgspec.json.encode(document())


def refusals_of(method: str) -> list[str]:
    """The reasons for which a method may be refused: at a table any, elsewhere the general ones."""
    reasons = refusals()
    at_table = {"table", "tokens"} & set(METHODS[method].params.__struct_encode_fields__)
    opens = {"command_reused", "too_many_tables"} if method == "table.open" else set()
    return [reason for reason in reasons if at_table or reason in _ANYWHERE | opens]


def _errors() -> dict[str, Any]:
    faults = {f"fault{code}": {"code": code, "message": said} for code, said in FAULTS.items()}
    return faults | {
        reason: {
            "code": kind.code,
            "message": REFUSALS[reason],
            "data": {"reason": reason, "temporary": kind.temporary},
        }
        for reason, kind in refusals().items()
    }


def _method(name: str) -> dict[str, Any]:
    names = [*(f"fault{code}" for code in FAULTS), *refusals_of(name)]
    return {
        "name": name,
        "summary": SUMMARIES[name],
        "tags": [{"name": name.partition(".")[0]}],
        "paramStructure": "by-name",
        "params": _params(name),
        "result": {"name": "result", "schema": any_of(results_of(name))},
        "errors": [{"$ref": f"#/components/errors/{one}"} for one in names],
        "examples": _examples(name),
    }


def _params(name: str) -> list[dict[str, Any]]:
    """By name, those that must be there first."""
    schema = components()[METHODS[name].params.__name__]
    found = []
    for member, form in schema["properties"].items():
        given = {"name": member, "required": member in schema["required"], "schema": dict(form)}
        described = given["schema"].pop("description", None)
        found.append(given | ({"description": described} if described else {}))
    return sorted(found, key=lambda given: not given["required"])


def _examples(name: str) -> list[dict[str, Any]]:
    frame, answer = examples().get(name, NONE)
    if frame is None or answer is None:
        return []  # of a method that is newer than the game
    params = [{"name": key, "value": value} for key, value in frame["params"].items()]
    result = {"name": "result", "value": answer["result"]}
    return [{"name": name, "params": params, "result": result}]
