"""AsyncAPI document of all messages, in both directions."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema.errors import codes
from dealer.gateway.schema.json_schema import components
from dealer.gateway.schema.messages import messages, payloads
from dealer.gateway.schema.notifications import NOTIFICATIONS
from dealer.gateway.schema.openrpc import DESCRIPTION, HOST, INFO, SERVERS, close_codes
from dealer.gateway.schema.titles import reference
from dealer.gateway.wire.protocol import PROTOCOL

Part = dict[str, Any]

_CHANNEL = "#/channels/house"


@cache
def asyncapi(path: str = "/") -> bytes:
    """The AsyncAPI 3 document of a server under `path` as JSON text; it is made once."""
    described = _messages()
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
                "schemas": _schemas() | payloads(),
                "correlationIds": {"id": {"location": "$message.payload#/id"}},
            },
        }
    )


def _schemas() -> dict[str, Part]:
    """The components; AsyncAPI's discriminator is the name of a property."""
    found = components()
    return found | {"Event": found["Event"] | {"discriminator": "type"}}


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
    found: dict[str, Part] = {}
    for name, title, type, summary, example in messages():
        found[name] = {
            "name": name,
            "title": title,
            "summary": summary,
            "payload": reference(type),
            "examples": [{"payload": example}] if example else [],
        }
        if name not in NOTIFICATIONS:
            found[name]["correlationId"] = {"$ref": "#/components/correlationIds/id"}
    return found
