"""`POST /rpc`: JSON-RPC 2.0 over HTTP, one object a request, with the methods of the WebSocket.

Errors of JSON-RPC have the status 200, and a notification 204. Other statuses are of HTTP: 401 for
a key that is not valid, 413, 415, 429 if a rate is exceeded, 503 while the server shuts down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from math import ceil

from msgspec import Struct
from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response

from dealer.errors import DealerError, RateLimited
from dealer.gateway.clients import ClientConnection, Endpoint
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.net.responses import allowing, response
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.session.answers import Answers
from dealer.gateway.session.context import GatewayContext
from dealer.gateway.session.dispatcher import Dispatcher
from dealer.gateway.session.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.service import CommandResult
from dealer.service.identity.service_keys import ServiceKey

PATH = "/rpc"
JSON = "application/json"

ENDED_SECONDS = 60
"""`Retry-After` for a client whose connection is closed for its rate."""


class RpcEndpoint(Endpoint):
    """Runs the requests to `/rpc`."""

    keeps = True

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        return super().check(connection, request) or content_refused(request.headers)

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        Post(self._context, connection).run(body)

    def count(self, status: int) -> None:
        self._context.metrics.posts[str(status)] += 1


class Post(Answers):
    """One request: its answer, and the transport of a session to which nothing is pushed.

    It runs in the same dispatcher as the requests of a WebSocket, so that both have the same
    methods, limits and metrics. Its session lasts for the request. What a session keeps between
    requests (its tables and tokens) is not kept: requests of several clients may follow each other
    on one connection of a proxy.
    """

    paused = False

    def __init__(self, context: GatewayContext, connection: ClientConnection) -> None:
        super().__init__(context, self)
        self.address = connection.address
        self.budget = connection.budget
        self._connection = connection
        self._finished = False
        self._retry_after_ms: int | None = None  # set if a rate was exceeded
        session = Session(
            context, self, service_key=connection.service_key, answers=self, pushes=False
        )
        self._dispatcher = Dispatcher(session)

    def run(self, body: bytes) -> None:
        """Run the request and answer it, now or later."""
        self._dispatcher.receive(body)
        if not self._dispatcher.request_seen:
            self.finish()  # it has no id, and could not be decoded

    def finish(self, payload: bytes | None = None, *, ends: bool = False) -> None:
        """Give the answer, unless it was given; None if the request wants none.

        With `ends` the client exceeds its rate so often that its connection is closed.
        """
        if self._finished:
            return
        self._finished = True
        # Not within the step that answers.
        asyncio.get_running_loop().call_soon(self._dispatcher.close)
        answer = self._response(payload, ends=ends)
        self._connection.answer(answer, close=ends or self._context.draining)

    def _response(self, payload: bytes | None, *, ends: bool) -> Response:
        more = {}
        status = HTTPStatus.OK if payload is not None else HTTPStatus.NO_CONTENT
        if ends or self._retry_after_ms is not None:
            status, milliseconds = HTTPStatus.TOO_MANY_REQUESTS, self._retry_after_ms
            seconds = ENDED_SECONDS if milliseconds is None else ceil(milliseconds / 1000)
            more["Retry_After"] = str(seconds)
        if status == HTTPStatus.NO_CONTENT:
            headers = Headers({"Cache-Control": "no-store"})
            return Response(status.value, status.phrase, headers, b"")
        if payload is None:
            return response(status, "Too many requests; send this again later.\n", **more)
        return response(status, payload, kind=JSON, **more)

    # Its answers

    def send(self, payload: bytes) -> None:
        self.finish(payload)

    def send_result(self, call: wire.Call, result: Struct) -> None:
        super().send_result(call, result)
        self.finish()

    def send_outcome(
        self, call: wire.Call, answer: Callable[[CommandResult], Struct], outcome: CommandResult
    ) -> None:
        self.send_result(call, answer(outcome))

    def send_error(self, call: wire.Call, error: Exception) -> None:
        super().send_error(call, error)
        self.finish()

    def refuse(self, id: bytes | None, error: DealerError) -> None:
        if isinstance(error, RateLimited):
            self._retry_after_ms = error.retry_after_ms
        super().refuse(id, error)
        self.finish()

    # The transport of its session

    def charge_to(self, budget: ClientBudget, key: ServiceKey) -> None:
        self.budget = budget

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> bool:
        return True

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close_with(self, code: CloseCode, reason: str) -> None:
        self.finish(ends=True)

    def abort(self) -> None:
        self._connection.abort()


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
        return allowing("POST, OPTIONS")
    sentence = "Send JSON-RPC 2.0 with POST; for notifications, open a WebSocket at /ws.\n"
    return response(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow="POST")
