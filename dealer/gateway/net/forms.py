"""The fields that a request has in its body: of a form, of either type, or of a JSON object."""

from __future__ import annotations

import json
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest


def fields_of(request: Request, body: bytes) -> list[tuple[str, str]]:
    """Names and values, in order; none for a request that is no POST.

    Members of JSON that are null are left out, and lists are texts with commas. Raises BadRequest
    for another type of body, and ValueError or RecursionError for one that cannot be read.
    """
    if not body or request.method != "POST":
        return []
    kind = "".join(request.headers.get_all("Content-Type")[-1:])
    match kind.partition(";")[0].strip().lower():
        case "application/x-www-form-urlencoded":
            return parse_qsl(body.decode(), keep_blank_values=True)
        case "multipart/form-data":
            return _multipart(kind, body)
        case "application/json":
            members = json.loads(body, object_pairs_hook=tuple)
            if members is None or isinstance(members, tuple):
                return [(name, _text(value)) for name, value in members or () if value is not None]
    raise BadRequest(
        "The body is neither a form nor a JSON object with its Content-Type: put the parameters "
        "into the query, like ?count=2."
    )


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _multipart(kind: str, body: bytes) -> list[tuple[str, str]]:
    parts = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    found: list[tuple[str, str]] = []
    for part in parts.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            found.append((name, content.decode()))
    return found
