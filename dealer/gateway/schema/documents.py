"""The documents: OpenRPC of all methods, for JSON-RPC tools, and AsyncAPI of all messages."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from dealer.errors import REFUSALS, BadRequest, Overloaded, RateLimited, Unavailable
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.schema.components import components, notifications, result_title
from dealer.gateway.schema.json_schema import first_paragraph, pascal, reference, schemas, struct
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire import results as r
from dealer.gateway.wire.protocol import PROTOCOL, ErrorCode
from dealer.gateway.wire.types import component
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
SERVERS = {"ws": "A server in the local network.", "wss": "A server behind a proxy with TLS."}
HTTP_SERVERS = {
    "http": "The same server, with POST, one request at a time.",
    "https": "The same behind a proxy with TLS.",
}
HOST = {"default": "localhost:8080", "description": "name or address, and port, of the server"}

Frame = dict[str, Any]
"""A message, or a part of a document."""

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


# AsyncAPI: all messages, in both directions, as whole JSON-RPC objects.

_CHANNEL = "#/channels/house"
_Version2 = Annotated[Literal["2.0"], Meta(title="JsonRpcVersion"), "version of JSON-RPC"]
_Id = Annotated[
    str | int | None, Meta(title="RequestId", description="The caller's own id of a request.")
]
_SameId = Annotated[_Id, "that of the request; null if it could not be read"]


class Message(NamedTuple):
    """A message with the type of its payload."""

    name: str
    title: str
    type: type[Struct]
    summary: str
    example: Frame | None


@cache
def asyncapi(path: str = "/") -> bytes:
    """The AsyncAPI 3 document of a server under `path` as JSON text; it is made once."""
    described = {message.name: _message(message) for message in messages()}
    found = components() | schemas(message.type for message in messages())
    # AsyncAPI's discriminator is the name of a property.
    found["Event"] = found["Event"] | {"discriminator": "type"}
    below = {"pathname": path.removesuffix("/")} if path != "/" else {}
    return msgspec.json.encode(
        {
            "asyncapi": "3.0.0",
            "id": "urn:dealer:v1",
            "info": INFO
            | {"description": f"{DESCRIPTION} {_codes()}", "tags": [{"name": "cards"}]},
            "defaultContentType": "application/json",
            "servers": {
                scheme: {"host": "{host}", "protocol": scheme, "description": summary}
                | {"variables": {"host": HOST}}
                | below
                for scheme, summary in SERVERS.items()
            },
            "channels": {"house": _channel(described)},
            "operations": _operations(),
            "components": {
                "messages": described,
                "schemas": found,
                "correlationIds": {"id": {"location": "$message.payload#/id"}},
            },
        }
    )


@cache
def messages() -> list[Message]:
    """Requests with their results, the refusal of any request, and notifications."""
    found = []
    for name, method in METHODS.items():
        (frame, answer), said = examples().get(name, NONE), method.summary
        result = _part(result_title(name), "what the method answers")
        answered = struct(
            f"{pascal(name)}Response",
            f"The answer to `{name}`.",
            {"jsonrpc": _Version2, "id": _SameId, "result": result},
        )
        found += [
            Message(f"{name}.request", f"{name}, request", _request(name), said, frame),
            Message(f"{name}.result", f"{name}, result", answered, said, answer),
        ]
    refused = struct(
        "ErrorResponse",
        "The answer to a request that was not executed.",
        {"jsonrpc": _Version2, "id": _SameId, "error": _part("Error", "why")},
    )
    example = examples().get("refusal", NONE).answer
    found.append(Message("refusal", "refusal", refused, "The reason of a refusal.", example))
    for name, notice in notifications().items():
        params = _part(notice.title, "what the server says")
        notification = struct(
            f"{pascal(name)}Notification",
            f"The notification `{name}`.",
            {"jsonrpc": _Version2, "method": _method_name(name), "params": params},
        )
        found.append(
            Message(name, name, notification, notice.summary, examples().get(name, NONE).frame)
        )
    return found


def _request(name: str) -> type[Struct]:
    """A request needs its id only for an answer, and `params` only if one is required."""
    params = METHODS[name].params.__name__
    return struct(
        f"{pascal(name)}Request",
        f"A request of `{name}`.",
        {
            "jsonrpc": _Version2,
            "id": Annotated[_Id, "the caller's own; a request without one is not answered"],
            "method": _method_name(name),
            "params": _part(params, "the parameters, by name"),
        },
        {"id"} if components()[params]["required"] else {"id", "params"},
        received=False,
    )


def _part(title: str, text: str) -> Any:
    return Annotated[dict[str, Any], component(title), text]


def _method_name(name: str) -> Any:
    return Annotated[Literal[name], "name of the method"]


def _codes() -> str:
    meanings = {int(code): code.meaning for code in ErrorCode}
    meanings |= {kind.code: first_paragraph(kind) for kind in REFUSALS.values()}
    refused = "; ".join(f"{code}: {meaning}" for code, meaning in sorted(meanings.items()))
    return f"Error codes: {refused}"


def _channel(messages: dict[str, Frame]) -> Frame:
    return {
        "address": "/ws",
        "title": "The server",
        "description": "One connection; `/ws/<table>` is the same for one table.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {
            "ws": {
                "method": "GET",
                "headers": {
                    "title": "HandshakeHeaders",
                    "type": "object",
                    "properties": {
                        "Authorization": {
                            "title": "Text",
                            "type": "string",
                            "description": "`Bearer` and a service key; players send none",
                        },
                        "Sec-WebSocket-Protocol": {
                            "title": "Subprotocol",
                            "type": "string",
                            "const": PROTOCOL,
                            "description": "the subprotocol, which may be left out",
                        },
                    },
                },
                "bindingVersion": "0.1.0",
            }
        },
        "x-close-codes": close_codes(),
    }


def _operations() -> dict[str, Frame]:
    """Requests with their answers, and notifications."""
    found: dict[str, Frame] = {}
    for name in METHODS:
        found[name] = {
            "action": "receive",
            "channel": {"$ref": _CHANNEL},
            "summary": METHODS[name].summary,
            "messages": [_named(f"{name}.request")],
            "reply": {
                "channel": {"$ref": _CHANNEL},
                "messages": [_named(f"{name}.result"), _named("refusal")],
            },
        }
    for name, notice in notifications().items():
        found[f"tell.{name}"] = {
            "action": "send",
            "channel": {"$ref": _CHANNEL},
            "summary": notice.summary,
            "messages": [_named(name)],
        }
    return found


def _named(name: str) -> Frame:
    return {"$ref": f"{_CHANNEL}/messages/{name}"}


def _message(message: Message) -> Frame:
    found: Frame = {
        "name": message.name,
        "title": message.title,
        "summary": message.summary,
        "payload": reference(message.type.__name__),
        "examples": [{"payload": message.example}] if message.example else [],
    }
    if message.name not in notifications():
        found["correlationId"] = {"$ref": "#/components/correlationIds/id"}
    return found
