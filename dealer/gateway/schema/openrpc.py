"""OpenRPC document of all methods, for JSON-RPC tools."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from dealer.errors import REFUSALS, BadRequest, Overloaded, RateLimited, Unavailable
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.schema.components import components, notifications, result_title
from dealer.gateway.schema.json_schema import first_paragraph, reference
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import PROTOCOL, ErrorCode
from dealer.version import __version__

DESCRIPTION = (
    "A card dealer that players can check. One JSON-RPC 2.0 object is one text frame of a "
    f"WebSocket (subprotocol `{PROTOCOL}`, which may be left out) at `/ws`, or at `/ws/<table>` "
    "for one table; batches and binary frames are refused. The events of a table's log are sent as "
    "notifications, one for every version, so that gaps are detectable. `POST /rpc` takes the same "
    "methods over HTTP, without notifications."
)
INFO = {
    "title": "dealer",
    "version": __version__,
    "description": DESCRIPTION,
    "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
}
SERVERS = {
    "ws": "A server in the local network.",
    "wss": "A server behind a proxy with TLS.",
}
HTTP_SERVERS = {
    "http": "The same server, with POST, one request at a time.",
    "https": "The same behind a proxy with TLS.",
}
HOST = {"default": "localhost:8080", "description": "name or address, and port, of the server"}

Frame = dict[str, Any]

_ANY_METHOD = {kind.reason for kind in (BadRequest, RateLimited, Overloaded, Unavailable)}


class Example(NamedTuple):
    """A recorded request with its answer, or a notification, which has no answer."""

    frame: Frame | None
    answer: Frame | None


NONE = Example(None, None)
"""The example of a method that is newer than the recorded game."""


@cache
def document(path: str = "/") -> r.OpenRpcDocument:
    """The OpenRPC 1.3 document of a server under `path`; it is made once."""
    below = path.removesuffix("/")
    return r.OpenRpcDocument(
        openrpc="1.3.2",
        info=INFO,
        servers=[
            {"name": scheme, "url": scheme + "://{host}" + below + where, "summary": summary}
            | {"variables": {"host": HOST}}
            for where, servers in (("/ws", SERVERS), ("/rpc", HTTP_SERVERS))
            for scheme, summary in servers.items()
        ],
        methods=[_method(name) for name in METHODS],
        components={"schemas": components(), "errors": _errors()},
        notifications=[
            {"name": name, "summary": notice.summary, "params": reference(notice.title)}
            for name, notice in notifications().items()
        ],
        closes=close_codes(),
    )


@cache
def openrpc(path: str = "/") -> bytes:
    """The OpenRPC document as JSON text."""
    return msgspec.json.encode(document(path))


@cache
def examples() -> dict[str, Example]:
    """By name of the method or notification; `refusal` is a refused request."""
    text = (resources.files(__package__) / "examples.jsonl").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        recorded = json.loads(line)
        found[recorded["name"]] = Example(recorded["frame"], recorded.get("answer"))
    return found


def refusals_of(method: str) -> list[str]:
    """The reasons for which a method may be refused: any at a table, otherwise general ones."""
    at_table = {"table", "tokens"} & set(METHODS[method].params.__struct_encode_fields__)
    opens = {"command_reused", "too_many_tables"} if method == "table.open" else set()
    return [reason for reason in REFUSALS if at_table or reason in _ANY_METHOD | opens]


def close_codes() -> list[dict[str, Any]]:
    """Every code with which the server closes a connection, and its meaning."""
    return [{"code": int(code), "meaning": code.meaning} for code in CloseCode]


def _errors() -> dict[str, Any]:
    faults = {f"fault{code}": {"code": code, "message": code.meaning} for code in ErrorCode}
    return faults | {
        reason: {
            "code": kind.code,
            "message": first_paragraph(kind),
            "data": {"reason": reason, "temporary": kind.temporary},
        }
        for reason, kind in REFUSALS.items()
    }


def _method(name: str) -> dict[str, Any]:
    names = [*(f"fault{code}" for code in ErrorCode), *refusals_of(name)]
    who = {"x-rule": METHODS[name].rule, "x-service-right": METHODS[name].right}
    return {member: given for member, given in who.items() if given is not None} | {
        "name": name,
        "summary": METHODS[name].summary,
        "tags": [{"name": name.partition(".")[0]}],
        "paramStructure": "by-name",
        "params": _params(name),
        "result": {"name": "result", "schema": reference(result_title(name))},
        "errors": [{"$ref": f"#/components/errors/{name}"} for name in names],
        "examples": _examples(name),
    }


def _params(name: str) -> list[dict[str, Any]]:
    """The parameters by name, required ones first."""
    schema = components()[METHODS[name].params.__name__]
    found = []
    for member, form in schema["properties"].items():
        given = {"name": member, "required": member in schema["required"], "schema": dict(form)}
        found.append(given | {"description": given["schema"].pop("description")})
    return sorted(found, key=lambda given: not given["required"])


def _examples(name: str) -> list[dict[str, Any]]:
    frame, answer = examples().get(name, NONE)
    if frame is None or answer is None:
        return []
    params = [{"name": key, "value": value} for key, value in frame["params"].items()]
    result = {"name": "result", "value": answer["result"]}
    return [{"name": name, "params": params, "result": result}]
