"""AsyncAPI document of all messages, in both directions: whole JSON-RPC objects."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from dealer.errors import REFUSALS
from dealer.gateway.schema.components import components, notifications, result_title
from dealer.gateway.schema.json_schema import first_paragraph, pascal, reference, schemas, struct
from dealer.gateway.schema.openrpc import (
    DESCRIPTION,
    HOST,
    INFO,
    NONE,
    SERVERS,
    Frame,
    close_codes,
    examples,
)
from dealer.gateway.session.methods import METHODS
from dealer.gateway.wire.protocol import PROTOCOL, ErrorCode
from dealer.gateway.wire.types import component

Part = dict[str, Any]

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
            {"jsonrpc": _Version2, "method": _method(name), "params": params},
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
            "method": _method(name),
            "params": _part(params, "the parameters, by name"),
        },
        {"id"} if components()[params]["required"] else {"id", "params"},
        received=False,
    )


def _part(title: str, text: str) -> Any:
    return Annotated[dict[str, Any], component(title), text]


def _method(name: str) -> Any:
    return Annotated[Literal[name], "name of the method"]


def _codes() -> str:
    meanings = {int(code): code.meaning for code in ErrorCode}
    meanings |= {kind.code: first_paragraph(kind) for kind in REFUSALS.values()}
    refused = "; ".join(f"{code}: {meaning}" for code, meaning in sorted(meanings.items()))
    return f"Error codes: {refused}"


def _channel(messages: dict[str, Part]) -> Part:
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


def _operations() -> dict[str, Part]:
    """Requests with their answers, and notifications."""
    found: dict[str, Part] = {}
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


def _named(name: str) -> Part:
    return {"$ref": f"{_CHANNEL}/messages/{name}"}


def _message(message: Message) -> Part:
    found: Part = {
        "name": message.name,
        "title": message.title,
        "summary": message.summary,
        "payload": reference(message.type.__name__),
        "examples": [{"payload": message.example}] if message.example else [],
    }
    if message.name not in notifications():
        found["correlationId"] = {"$ref": "#/components/correlationIds/id"}
    return found
