"""The messages in both directions: whole JSON-RPC objects, with schemas and examples."""

from __future__ import annotations

from typing import Any, NamedTuple

from dealer.gateway.rpc.methods import METHODS
from dealer.gateway.schema.events import object_of
from dealer.gateway.schema.examples import NONE, Frame, examples
from dealer.gateway.schema.json_schema import (
    components,
    notification_schema,
    result_schema,
)
from dealer.gateway.schema.notifications import NOTIFICATIONS
from dealer.gateway.schema.titles import Titles, pascal, reference

Schema = dict[str, Any]

_NULL = {"title": "Null", "type": "null"}
_VERSION_2 = {
    "title": "JsonRpcVersion",
    "type": "string",
    "const": "2.0",
    "description": "version of JSON-RPC",
}
_ID: Schema = {"title": "RequestId", "anyOf": [{"type": "string"}, {"type": "integer"}, _NULL]}
_OWN_ID = _ID | {"description": "the caller's own; a request without one is not answered"}
_SAME_ID = _ID | {"description": "that of the request; null if it could not be read"}
_DESCRIBED = {"RequestId": "The caller's own id of a request."}


class Message(NamedTuple):
    """A message; `type` is the title of the schema of its payload."""

    name: str
    title: str
    type: str
    summary: str
    example: Frame | None


def messages() -> list[Message]:
    """Requests with their results, the refusal of any request, and notifications."""
    shown = examples()
    found = []
    for name, method in METHODS.items():
        said, (frame, answer) = method.summary, shown.get(name, NONE)
        asked, answered = f"{name}, request", f"{name}, result"
        found += [
            Message(f"{name}.request", asked, f"{pascal(name)}Request", said, frame),
            Message(f"{name}.result", answered, f"{pascal(name)}Response", said, answer),
        ]
    refused = shown.get("refusal", NONE).answer
    found.append(
        Message("refusal", "refusal", "ErrorResponse", "The reason of a refusal.", refused)
    )
    for name, said in NOTIFICATIONS.items():
        notice = f"{pascal(name)}Notification"
        found.append(Message(name, name, notice, said, shown.get(name, NONE).frame))
    return found


def payloads() -> dict[str, Schema]:
    """The schemas of the messages, by title."""
    found = {
        "ErrorResponse": _received(
            "ErrorResponse",
            "The answer to a request that was not executed.",
            {"id": _SAME_ID, "error": reference("Error", "why")},
        )
    }
    for name in METHODS:
        result = result_schema(name) | {"description": "what the method answers"}
        asked, answered = f"{pascal(name)}Request", f"{pascal(name)}Response"
        found[asked] = _request(asked, name)
        found[answered] = _received(
            answered, f"The answer to `{name}`.", {"id": _SAME_ID, "result": result}
        )
    for name in NOTIFICATIONS:
        params = notification_schema(name) | {"description": "what the server says"}
        notice = f"{pascal(name)}Notification"
        found[notice] = _received(
            notice, f"The notification `{name}`.", {"method": _method(name), "params": params}
        )
    titles = Titles(_DESCRIBED)
    titled = {title: titles.within(schema) for title, schema in found.items()}
    return titled | titles.components


def _request(title: str, name: str) -> Schema:
    """A request needs its id only for an answer, and `params` only where one is required."""
    params = METHODS[name].params.__name__
    members = {"jsonrpc": _VERSION_2, "id": _OWN_ID, "method": _method(name)}
    members["params"] = reference(params, "the parameters, by name")
    optional = {"id"} if components()[params]["required"] else {"id", "params"}
    request = object_of(title, members, optional=optional, received=False)
    return request | {"description": f"A request of `{name}`."}


def _method(name: str) -> Schema:
    return {"type": "string", "const": name, "description": "name of the method"}


def _received(title: str, description: str, members: dict[str, Schema]) -> Schema:
    return object_of(title, {"jsonrpc": _VERSION_2} | members) | {"description": description}
