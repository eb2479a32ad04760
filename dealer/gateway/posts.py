"""`POST /rpc`: JSON-RPC 2.0 over HTTP, one object a request, with the methods of the WebSocket.

Errors of JSON-RPC have the status 200, and a notification 204. Other statuses are of HTTP: 401 for
a key that is not valid, 413, 415, 429 where a rate is exceeded, 503 while the server shuts down.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from math import ceil

from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.clients import ClientConnection
from dealer.gateway.net.responses import response
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.rpc.posted import PostedAnswer, run_posted

PATH = "/rpc"
JSON = "application/json"

ENDED_SECONDS = 60
"""`Retry-After` for a client whose connection is closed for its rate."""


class RpcEndpoint:
    """Runs the requests to `/rpc`; `check` admits or refuses a request by its head."""

    keeps = True

    def __init__(
        self,
        context: GatewayContext,
        check: Callable[[ClientConnection, Request], Response | None],
    ) -> None:
        self._context = context
        self._check = check

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        refusal = self._check(connection, request)
        return refusal or content_refused(request.headers)

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        run_posted(
            self._context,
            body,
            address=connection.address,
            budget=connection.budget,
            service_key=connection.service_key,
            on_answer=partial(self._answer, connection),
            abort=connection.abort,
        )

    def count(self, status: int) -> None:
        self._context.metrics.posts[str(status)] += 1

    def _answer(self, connection: ClientConnection, answer: PostedAnswer) -> None:
        connection.answer(response_of(answer), close=answer.ends or self._context.draining)


def response_of(answer: PostedAnswer) -> Response:
    """The HTTP response with the answer to a request."""
    more = {}
    status = HTTPStatus.OK if answer.payload is not None else HTTPStatus.NO_CONTENT
    if answer.ends or answer.retry_after_ms is not None:
        status = HTTPStatus.TOO_MANY_REQUESTS
        milliseconds = answer.retry_after_ms
        seconds = ENDED_SECONDS if milliseconds is None else ceil(milliseconds / 1000)
        more["Retry_After"] = str(seconds)
    if status == HTTPStatus.NO_CONTENT:
        return Response(status.value, status.phrase, Headers({"Cache-Control": "no-store"}), b"")
    if answer.payload is None:
        return response(status, "Too many requests; send this again later.\n", **more)
    return response(status, answer.payload, kind=JSON, **more)


def content_refused(headers: Headers) -> Response | None:
    """415 for a body that is not said to be JSON in UTF-8, as it is; None for any other."""
    try:
        kind, *parameters = headers.get("Content-Type", "").lower().split(";")
        coding = headers.get("Content-Encoding", "identity").strip().lower()
    except MultipleValuesError:
        return response(HTTPStatus.BAD_REQUEST, "A header occurs twice in the request.\n")
    charsets = [parameter.strip().strip('"').replace('="', "=") for parameter in parameters]
    if kind.strip() == JSON and set(charsets) <= {"charset=utf-8", ""} and coding == "identity":
        return None
    sentence = f"Send the request as Content-Type: {JSON}, in UTF-8 and without an encoding.\n"
    return response(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence, Accept=JSON)


def method_refused(request: Request) -> Response:
    """The answer to any request to `/rpc` that is not a POST; no other origin is allowed."""
    if request.method == "OPTIONS":
        status = HTTPStatus.NO_CONTENT
        headers = Headers({"Allow": "POST, OPTIONS", "Connection": "close"})
        return Response(status.value, status.phrase, headers, b"")
    sentence = "Send JSON-RPC 2.0 with POST; for notifications, open a WebSocket at /ws.\n"
    return response(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow="POST")
