"""Reading what a guest wrote, and writing what the house answers: JSON-RPC 2.0, frame by frame.

One text frame is one request. What cannot be read gets an answer that says what was wrong with it,
and costs nobody the connection. A request without an id is carried out and not answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from dealer.errors import DealerError, RateLimited, Refused, Unavailable
from dealer.game.view import Viewer, may_see
from dealer.gateway.params import Params
from dealer.gateway.results import Error
from dealer.gateway.views import Why
from dealer.service import Entry

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

NULL = b"null"

encode = msgspec.json.encode


class Envelope(Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = Raw(b"{}")
    id: Raw = Raw()


class _Identified(Struct):
    id: Raw = Raw()


class Call(NamedTuple):
    """A request that was understood; `id` is its JSON text, None where no answer is wanted."""

    id: bytes | None
    method: str
    params: Any


class Fault(NamedTuple):
    """A request that was not."""

    id: bytes | None
    code: int
    message: str


class Reader:
    """Reads frames of the methods that `params` has, each with the type of its parameters."""

    def __init__(self, params: Mapping[str, type[Params]]) -> None:
        self._methods = {
            method: (msgspec.json.Decoder(kind).decode, _names(kind))
            for method, kind in params.items()
        }

    def read(self, data: bytes) -> Call | Fault:
        try:
            # msgspec takes Raw members as they are, and would let other bytes than UTF-8 pass.
            data.decode()
            envelope = _envelope(data)
        except (ValueError, RecursionError) as error:
            return _unreadable(data, error)
        id = bytes(envelope.id)
        if id and not _is_id(id):
            return Fault(NULL, INVALID_REQUEST, "An id is a string, an integer or null.")
        answer_to = id or None
        method = self._methods.get(envelope.method)
        if method is None:
            return Fault(answer_to, UNKNOWN_METHOD, "There is no such method.")
        decode, names = method
        try:
            params = decode(envelope.params)
            doubled = _has_doubled_key(data, names)
        except (ValueError, RecursionError) as error:
            return Fault(answer_to, INVALID_PARAMS, _sentence(error, "The parameters"))
        if doubled:
            return Fault(answer_to, INVALID_REQUEST, "A member stands twice in one object.")
        return Call(answer_to, envelope.method, params)


_envelope = msgspec.json.Decoder(Envelope).decode
_identified = msgspec.json.Decoder(_Identified).decode
_is_id = re.compile(rb'"[^\x00-\x1f]*"|-?[0-9]{1,20}|null', re.DOTALL).fullmatch
_located = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<where>[^`]*)`)?", re.DOTALL)


def _names(kind: type[Params]) -> tuple[bytes, ...]:
    """The members that a request with these parameters can have, quoted."""
    names = (*Envelope.__struct_encode_fields__, *kind.__struct_encode_fields__)
    return tuple(b'"%b"' % name.encode() for name in names)


def _has_doubled_key(data: bytes, names: Iterable[bytes]) -> bool:
    """Whether some object of a request has a member twice; JSON readers disagree about such.

    A request that was decoded has no members but those in `names`, except in objects within its
    parameters. So as a rule it is enough to see that no name stands there twice.
    """
    plain = data.count(b"{") <= 2 and b"\\" not in data
    if plain and not any(data.count(name) > 1 for name in names):
        return False
    doubled = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal doubled
        doubled = doubled or len({key for key, _ in pairs}) < len(pairs)

    json.loads(data, object_pairs_hook=look, parse_int=str, parse_float=str)
    return doubled


def _unreadable(data: bytes, error: Exception) -> Fault:
    if not isinstance(error, msgspec.ValidationError):
        return Fault(NULL, PARSE_ERROR, "This is not JSON in UTF-8, or it is nested too deeply.")
    if data.lstrip()[:1] == b"[":
        return Fault(NULL, INVALID_REQUEST, "Batches are not taken: send one request a frame.")
    id = NULL
    try:
        found = bytes(_identified(data).id)
        id = found if _is_id(found) else NULL
    except (ValueError, RecursionError):
        pass
    return Fault(id, INVALID_REQUEST, _sentence(error, "The request"))


def _sentence(error: Exception, whole: str) -> str:
    """What a decoder found wrong, with the name of the field."""
    match = _located.fullmatch(str(error))
    if isinstance(error, RecursionError) or match is None:
        return f"{whole} is nested too deeply."
    what = match["what"].replace("`", "")
    where = match["where"] or whole
    return f"{where}: {what[:1].lower()}{what[1:]}."


def content(call: Call) -> bytes:
    """What tells one command's content from another's: method and parameters.

    Who asks (`token`), where (`table`) and under which id (`cmd`) do not belong to it.
    """
    params = msgspec.structs.asdict(call.params)
    kept = {
        name: value
        for name, value in params.items()
        if value is not None and name not in ("cmd", "table", "token")
    }
    return call.method.encode() + b" " + encode(kept)


def result(id: bytes, answer: Struct) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + encode(answer) + b"}"


def fault(id: bytes, code: int, message: str) -> bytes:
    return _error(id, Error(code=code, message=message))


def refusal(id: bytes, error: DealerError) -> bytes:
    """The answer to a wish that was not granted, or that the log could not take."""
    return _error(id, error_of(error))


def error_of(error: DealerError) -> Error:
    """What a guest is told. What went wrong with the log is for the operator: it may name files."""
    if not isinstance(error, Refused) or isinstance(error, Unavailable):
        error = Unavailable("This cannot be done just now; send it again with the same cmd.")
    data: Why = {"reason": error.reason, "temporary": error.temporary}
    if isinstance(error, RateLimited):
        data["retry_after_ms"] = error.retry_after_ms
    return Error(code=error.code, message=str(error), data=data)


def _error(id: bytes, error: Error) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"error":' + encode(error) + b"}"


def notification(method: str, params: Struct) -> bytes:
    return b'{"jsonrpc":"2.0","method":"' + method.encode() + b'","params":' + encode(params) + b"}"


def events(entries: Sequence[Entry], *, seat: int | None, since: int) -> bytes:
    """What one viewer gets to see of these entries: one frame for an append, in order.

    `seat` is the viewer's since version `since`; None for who sees what everybody sees.
    """
    shown = [seen(entry, seat=seat, since=since) for entry in entries]
    if len(shown) == 1:
        return f'{{"jsonrpc":"2.0","method":"event","params":{shown[0]}}}'.encode()
    listed = ",".join(shown)
    return f'{{"jsonrpc":"2.0","method":"events","params":{{"list":[{listed}]}}}}'.encode()


def seen(entry: Entry, *, seat: int | None, since: int) -> str:
    """One entry as one viewer sees it: the leaf unchanged, what is theirs alone beside it."""
    version, leaf, owner, private = entry
    if owner is None or not may_see(Viewer(seat, since), owner, version):
        return leaf
    return f'{leaf[:-1]},"private":{private}}}'


def text_frame(payload: bytes) -> bytes:
    """A text message as it goes over the socket: one final frame without a mask, RFC 6455 5.2."""
    length = len(payload)
    if length < 126:
        return b"\x81" + length.to_bytes(1, "big") + payload
    if length < 65536:
        return b"\x81\x7e" + length.to_bytes(2, "big") + payload
    return b"\x81\x7f" + length.to_bytes(8, "big") + payload
