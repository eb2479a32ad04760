"""JSON-RPC 2.0 on WebSocket text frames: decodes requests, encodes results, errors and
notifications.

One text frame is one request. A request that cannot be decoded is answered with an error and does
not cost the client its connection. A request without an id is executed and not answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from dealer import errors
from dealer.eventlog.rows import EVERYONE
from dealer.game.state import SeatHolder
from dealer.game.view import BROADCAST, Audience, Viewer
from dealer.gateway.close_codes import Code
from dealer.gateway.wire.faults import said, unknown_method
from dealer.gateway.wire.params import Params
from dealer.gateway.wire.views import ErrorData
from dealer.proof import canonical
from dealer.service import EventRecord

PROTOCOL = "dealer.v1"
"""WebSocket subprotocol."""

NULL = b"null"

encode = msgspec.json.encode


class ErrorCode(Code):
    """Error codes of JSON-RPC 2.0, section 5.1."""

    PARSE_ERROR = -32700, "The frame is not JSON in UTF-8."
    INVALID_REQUEST = -32600, "The frame is not one JSON-RPC 2.0 request."
    UNKNOWN_METHOD = -32601, "The method does not exist."
    INVALID_PARAMS = -32602, "A parameter is missing, unknown, or of another type."
    INTERNAL_ERROR = -32603, "Internal error of the server."


class Error(Struct, omit_defaults=True, kw_only=True):
    """Why a request was not executed."""

    code: Annotated[
        int,
        Meta(
            title="ErrorCode",
            description="A number for each reason of a refusal; negative for faults of JSON-RPC.",
            extra_json_schema={
                "enum": sorted([*ErrorCode, *(kind.code for kind in errors.REFUSALS.values())])
            },
        ),
        "what went wrong, as a number: a refusal is positive, a fault negative",
    ]
    message: Annotated[str, "a sentence for people"]
    data: Annotated[ErrorData | None, "of a refusal: the reason for programs"] = None


_NO_PARAMS = Raw(b"{}")


class Envelope(Struct, forbid_unknown_fields=True):
    """A request with its parameters and its id still encoded."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = _NO_PARAMS
    id: Raw = Raw()


class _Identified(Struct):
    id: Raw = Raw()


class Call(Struct):
    """A decoded request; `id` is its JSON text, None if no answer is wanted.

    `received` is when it was decoded, in seconds of `perf_counter`; `content` is for the function
    of this name.
    """

    id: bytes | None
    method: str
    params: Any
    received: float
    content: bytes = b""


class Fault(NamedTuple):
    """A request that could not be decoded; `id` as in `Call`."""

    id: bytes | None
    code: ErrorCode
    message: str


class Reader:
    """Decodes requests of the methods in `params`, each with the type of its parameters."""

    def __init__(self, params: Mapping[str, type[Params]]) -> None:
        self._types = params
        self._methods: dict[str, Callable[[Any], Any]] = {}  # of those that were called

    def read(self, data: bytes) -> Call | Fault:
        """Decode the payload of one text frame."""
        try:
            # msgspec copies Raw members unchecked, and would accept bytes that are not UTF-8.
            if not data.isascii() or data.count(b"{") + data.count(b"[") > canonical.DEPTH_MAX:
                canonical.check_depth(data.decode())
            envelope = _envelope(data)
        except errors.NotCanonical as error:
            id = _id_within(data)
            code = ErrorCode.PARSE_ERROR if id == NULL else ErrorCode.INVALID_REQUEST
            return Fault(id, code, str(error))
        except ValueError as error:
            return _unreadable(data, error)
        id = bytes(envelope.id)
        if id and not _is_id(id):
            return Fault(NULL, ErrorCode.INVALID_REQUEST, "An id is a string, an integer or null.")
        answer_to = id or None
        decode = self._methods.get(envelope.method) or self._decoder(envelope.method)
        if decode is None:
            return Fault(
                answer_to, ErrorCode.UNKNOWN_METHOD, unknown_method(envelope.method, self._types)
            )
        try:
            params = decode(envelope.params)
            # Usually each colon belongs to a member, and each member is another one.
            members = 0 if envelope.params is _NO_PARAMS else 1 + len(_members(envelope.params))
            plain = data.count(b":") == 2 + bool(id) + members
            duplicate = not plain and _has_duplicate_member(data)
        except ValueError as error:
            message = said(error, "The parameters", self._types[envelope.method])
            return Fault(answer_to, ErrorCode.INVALID_PARAMS, message)
        if duplicate:
            message = "A member occurs twice in one object."
            return Fault(answer_to, ErrorCode.INVALID_REQUEST, message)
        return Call(answer_to, envelope.method, params, perf_counter())

    def _decoder(self, method: str) -> Callable[[Any], Any] | None:
        kind = self._types.get(method)
        if kind is None:
            return None
        return self._methods.setdefault(method, msgspec.json.Decoder(kind).decode)


_envelope = msgspec.json.Decoder(Envelope).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_identified = msgspec.json.Decoder(_Identified).decode
_is_id = re.compile(rb'"[^\x00-\x1f]*"|-?[0-9]{1,20}|null', re.DOTALL).fullmatch


def _has_duplicate_member(data: bytes) -> bool:
    """Whether an object of a request has a member twice, which JSON parsers treat differently."""
    duplicate = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal duplicate
        duplicate = duplicate or len({key for key, _ in pairs}) < len(pairs)

    json.loads(data, object_pairs_hook=check, parse_int=str, parse_float=str)
    return duplicate


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8, as RFC 6455 requires of a text message."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unreadable(data: bytes, error: Exception) -> Fault:
    if not isinstance(error, msgspec.ValidationError):
        message = "This is not JSON in UTF-8."
        return Fault(NULL, ErrorCode.PARSE_ERROR, message)
    if data.lstrip()[:1] == b"[":
        message = "Batches are not accepted: send each request on its own."
        return Fault(NULL, ErrorCode.INVALID_REQUEST, message)
    message = said(error, "The request", Envelope)
    return Fault(_id_in(data), ErrorCode.INVALID_REQUEST, message)


def _id_in(data: bytes) -> bytes:
    """The id of a request that could not be decoded otherwise."""
    try:
        found = bytes(_identified(data).id)
    except ValueError:
        return NULL
    return found if _is_id(found) else NULL


def _id_within(data: bytes) -> bytes:
    """The same of one that is nested too deeply, whose members are emptied."""
    text, kept, start, before = data.decode(), "", 0, 0
    for place, depth in canonical.nesting(text):
        if (before, depth) == (1, 2):
            kept += text[start : place + 1]
        elif (before, depth) == (2, 1):
            start = place
        before = depth
    return _id_in((kept + text[start:]).encode())


_NOT_CONTENT = frozenset(("cmd", "table", "token"))


def content(call: Call) -> bytes:
    """The content of a command, for comparison with others under the same id.

    It consists of the method and the parameters without the caller (`token`), the table and the id
    itself (`cmd`).
    """
    if not call.content:
        params, kept = call.params, {}
        for name in _kept(params.__struct_fields__):
            value = getattr(params, name)
            if value is not None:
                kept[name] = value
        call.content = call.method.encode() + b" " + encode(kept)
    return call.content


@cache
def _kept(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in _NOT_CONTENT)


def result(id: bytes, answer: Struct) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + encode(answer) + b"}"


def fault(id: bytes, code: ErrorCode, message: str) -> bytes:
    return _error(id, Error(code=code, message=message))


def refusal(id: bytes, error: errors.DealerError) -> bytes:
    """The answer to a request that was refused, or that failed in the log."""
    return _error(id, error_of(error))


def error_of(error: errors.DealerError) -> Error:
    """The error as a client may see it: texts of log errors are for operators, and name files."""
    if not isinstance(error, errors.Refused) or isinstance(error, errors.Unavailable):
        error = errors.Unavailable(
            "This is not possible at the moment; send it again with the same cmd."
        )
    data: ErrorData = {"reason": error.reason, "temporary": error.temporary}
    if isinstance(error, errors.RateLimited):
        data["retry_after_ms"] = error.retry_after_ms
    return Error(code=error.code, message=str(error), data=data)


def _error(id: bytes, error: Error) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"error":' + encode(error) + b"}"


def notification(method: str, params: Struct) -> bytes:
    return b'{"jsonrpc":"2.0","method":"' + method.encode() + b'","params":' + encode(params) + b"}"


def text_frame(payload: bytes) -> bytes:
    """A text message as one final, unmasked frame (RFC 6455, section 5.2)."""
    return frame_head(len(payload)) + payload


def result_frame(id: bytes, answer: Struct) -> bytes:
    """The frame with the result of a request."""
    payload = b'{"jsonrpc":"2.0","id":' + id + b',"result":' + encode(answer) + b"}"
    size = len(payload)
    return (HEADS[size] if size < len(HEADS) else frame_head(size)) + payload


def event_frame(entries: Sequence[EventRecord], viewer: Viewer | Audience) -> bytes:
    """The frame with the events of one append, in their order, as `viewer` may see them.

    An event is its leaf unchanged, plus the private face that it shows to the viewer's seat, in a
    broadcast to any seat, or the opening of what people wrote in it.
    """
    seat, since = viewer if isinstance(viewer, SeatHolder) else (None, 0)
    texts: list[str] = []
    for entry in entries:
        if entry.seat == EVERYONE:
            texts.append(f'{entry.leaf[:-1]},"opened":{entry.private}}}')
        # A player who took the seat after the event may not see what it showed to the one before.
        elif entry.seat is not None and (
            viewer == BROADCAST or (entry.seat == seat and since < entry.version)
        ):
            texts.append(f'{entry.leaf[:-1]},"private":{entry.private}}}')
        else:
            texts.append(entry.leaf)
    if len(texts) == 1:
        payload = f'{{"jsonrpc":"2.0","method":"event","params":{texts[0]}}}'.encode()
    else:
        listed = ",".join(texts)
        payload = f'{{"jsonrpc":"2.0","method":"events","params":{{"list":[{listed}]}}}}'.encode()
    size = len(payload)
    return (HEADS[size] if size < len(HEADS) else frame_head(size)) + payload


def frame_head(size: int) -> bytes:
    """The head of a frame with a payload of so many bytes."""
    if size < 126:
        return b"\x81" + size.to_bytes(1, "big")
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


HEADS = tuple(map(frame_head, range(1024)))
"""The heads of short frames, made once: every event and every answer needs one."""
