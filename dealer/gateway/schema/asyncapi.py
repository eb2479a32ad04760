"""AsyncAPI document of all messages, in both directions."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema.errors import codes
from dealer.gateway.schema.events import object_of
from dealer.gateway.schema.examples import NONE, examples
from dealer.gateway.schema.json_schema import (
    REF,
    any_of,
    components,
    notification_schema,
    schema_of,
)
from dealer.gateway.schema.notifications import NOTIFICATIONS
from dealer.gateway.schema.openrpc import ABOUT, HOST, SERVERS, close_codes
from dealer.gateway.version import program_version
from dealer.gateway.wire.protocol import PROTOCOL

Part = dict[str, Any]

_CHANNEL = "#/channels/house"
_VERSION_2 = {"type": "string", "const": "2.0"}
_ID: Part = {
    "description": "the caller's own; a request without one is not answered",
    "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
}


@cache
def asyncapi() -> bytes:
    """The AsyncAPI 3 document as JSON text; it is made once."""
    messages = _messages()
    return msgspec.json.encode(
        {
            "asyncapi": "3.0.0",
            "id": "urn:dealer:v1",
            "info": {
                "title": "dealer",
                "version": program_version(),
                "description": f"{ABOUT} {_codes()}",
                "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
                "tags": [{"name": "cards"}],
            },
            "defaultContentType": "application/json",
            "servers": {
                scheme: {"host": "{host}", "protocol": scheme, "description": summary}
                | {"variables": {"host": HOST}}
                for scheme, summary in SERVERS.items()
            },
            "channels": {"house": _channel(messages)},
            "operations": _operations(),
            "components": {
                "messages": messages,
                "schemas": components(),
                "correlationIds": {"id": {"location": "$message.payload#/id"}},
            },
        }
    )


def _codes() -> str:
    refused = "; ".join(f"{code}: {meaning}" for code, meaning in sorted(codes().items()))
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
                    "type": "object",
                    "properties": {
                        "Authorization": {
                            "type": "string",
                            "description": "`Bearer` and a service key; players send none",
                        },
                        "Sec-WebSocket-Protocol": {"type": "string", "enum": [PROTOCOL]},
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
            "messages": [_message(f"{name}.request")],
            "reply": {
                "channel": {"$ref": _CHANNEL},
                "messages": [_message(f"{name}.result"), _message("refusal")],
            },
        }
    for name, summary in NOTIFICATIONS.items():
        found[f"tell.{name}"] = {
            "action": "send",
            "channel": {"$ref": _CHANNEL},
            "summary": summary,
            "messages": [_message(name)],
        }
    return found


def _message(name: str) -> Part:
    return {"$ref": f"{_CHANNEL}/messages/{name}"}


def _messages() -> dict[str, Part]:
    shown = examples()
    found: dict[str, Part] = {}
    for name, method in METHODS.items():
        frame, answer = shown.get(name, NONE)
        params = schema_of(method.params)
        asked = _said({"id": _ID} | _called(name, params), optional=_optional(method.params))
        answered = _said({"id": _ID, "result": any_of(METHODS[name].results)})
        found[f"{name}.request"] = _described(name, "request", METHODS[name].summary, asked, frame)
        found[f"{name}.result"] = _described(
            name, "result", METHODS[name].summary, answered, answer
        )
    refused = _said({"id": _ID, "error": {"$ref": f"{REF}Error"}})
    said = "The reason of a refusal."
    found["refusal"] = _described("refusal", "", said, refused, shown.get("refusal", NONE).answer)
    for name, summary in NOTIFICATIONS.items():
        message = _said(_called(name, notification_schema(name)))
        found[name] = _described(name, "", summary, message, shown.get(name, NONE).frame)
    return found


def _optional(params: Any) -> set[str]:
    """A request needs its id only for an answer, and `params` only where one is required."""
    required = components()[params.__name__]["required"]
    return {"id"} if required else {"id", "params"}


def _called(method: str, params: Part) -> dict[str, Part]:
    return {"method": {"type": "string", "const": method}, "params": params}


def _said(members: dict[str, Part], *, optional: set[str] | None = None) -> Part:
    return object_of({"jsonrpc": _VERSION_2} | members, optional=optional or set())


def _described(name: str, kind: str, summary: str, payload: Part, example: Part | None) -> Part:
    found: Part = {
        "name": f"{name}.{kind}" if kind else name,
        "title": f"{name}, {kind}" if kind else name,
        "summary": summary,
        "payload": payload,
        "examples": [{"payload": example}] if example else [],
    }
    if "id" in payload["properties"]:
        found["correlationId"] = {"$ref": "#/components/correlationIds/id"}
    return found
