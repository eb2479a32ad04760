"""One request on a kept connection: its body is read with h11, within limits, and answered.

    receive(data) … → EndOfMessage → run(self, request, body) → answer(response) → done(leftover)

A refused request is answered when its body has been read, so that the connection can be kept and
the client reads the answer. Where the body is too long, too late, or waits for `100 Continue`, the
answer comes at once; what still arrives is dropped, and then the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from time import thread_time

import h11
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.request_head import MAX_HEAD
from dealer.gateway.http.responses import response

MAX_CHUNKS = 256
"""Chunks of one body: each takes time, however small it is."""

UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
"""The status after which no connection is kept."""


class PostExchange:
    """One request, and its answer.

    `check` refuses a request by its head; `run` is called with this exchange, an accepted request
    and its body, and has `answer` called, now or later. `count` is called with the answer's status.
    """

    def __init__(
        self,
        connection: ClientConnection,
        check: Callable[[Request], Response | None],
        run: Callable[[PostExchange, Request, bytes], None],
        *,
        count: Callable[[int], None],
    ) -> None:
        self._count = count
        self._chunks = 0
        self._connection = connection
        self._check = check
        self._run = run
        self._limit = connection.limits.message
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: Request  # once its head was read
        self._head_only = False
        self._refusal: Response | None = None
        self._body = bytearray()
        self._running = False
        self._answered = False

    def receive(self, data: bytes) -> None:
        """Take the next bytes of the connection, the first time with the request's head."""
        if self._answered:
            return
        started_at = thread_time()
        self._http.receive_data(data)
        complete = False
        while not (self._running or self._answered or complete):
            event = self._next_event()
            complete = isinstance(event, h11.EndOfMessage)
            if not (complete or self._take(event)):
                break
        self._connection.budget.cpu.step(thread_time() - started_at)
        if complete:
            self._end()

    def time_out(self) -> None:
        """The request did not arrive in time."""
        if not self._running:
            self._answer_early(
                response(HTTPStatus.REQUEST_TIMEOUT, "The request was not sent in time.\n")
            )

    def answer(self, response: Response, *, close: bool = False) -> None:
        """Write the answer; with `close`, end the connection after it."""
        self._running = False
        if self._answered:
            return
        self._answered = True
        self._count(response.status_code)
        try:
            self._write(response, close=close or response.status_code == UNAVAILABLE)
        except Exception:
            self._connection.abort()
            raise
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            leftover, _ = self._http.trailing_data
            self._connection.next_request(bytes(leftover))
        else:
            self._connection.linger()

    def _next_event(self) -> object:
        """The next part of the request, for `_take`; an error where it is not HTTP."""
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            return error

    def _take(self, event: object) -> bool:
        """Handle a part of the request; False if more data is needed."""
        if isinstance(event, h11.Request):
            self._begin(event)
        elif isinstance(event, h11.Data):
            self._add(event)
        elif isinstance(event, h11.RemoteProtocolError):
            status = HTTPStatus(event.error_status_hint)
            self._answer_early(response(status, f"This is not a valid request: {event}.\n"))
        else:
            if self._http.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            return False
        return True

    def _begin(self, head: h11.Request) -> None:
        decoded = [(name.decode(), value.decode("latin-1")) for name, value in head.headers]
        headers = Headers(decoded)
        self._request = Request(head.target.decode(), headers, head.method.decode())
        self._head_only = head.method == b"HEAD"
        lengths = headers.get_all("Content-Length")
        if lengths and headers.get_all("Transfer-Encoding"):
            sentence = "A request has either Content-Length or Transfer-Encoding.\n"
            self._answer_early(response(HTTPStatus.BAD_REQUEST, sentence))
        elif lengths and int(lengths[0]) > self._limit:  # h11 has checked that it is a number
            self._answer_early(self._too_large())
        else:
            self._refusal = self._check(self._request)
            if self._refusal is not None and self._http.they_are_waiting_for_100_continue:
                self._answer_early(self._refusal)

    def _add(self, event: h11.Data) -> None:
        self._body += event.data
        self._chunks += event.chunk_start
        if len(self._body) > self._limit or self._chunks > MAX_CHUNKS:
            self._answer_early(self._too_large())

    def _too_large(self) -> Response:
        sentence = f"A request may have at most {self._limit} bytes, in {MAX_CHUNKS} chunks.\n"
        return response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)

    def _end(self) -> None:
        self._running = True
        self._connection.body_complete()
        if self._refusal is not None:
            self.answer(self._refusal)
        else:
            self._run(self, self._request, bytes(self._body))

    def _answer_early(self, response: Response) -> None:
        self._connection.body_complete()
        self.answer(response, close=True)

    def _write(self, answer: Response, *, close: bool) -> None:
        headers = [
            (name, value) for name, value in answer.headers.raw_items() if name != "Connection"
        ]
        if close:
            headers.append(("Connection", "close"))
        self._send(
            h11.Response(
                status_code=answer.status_code,
                reason=answer.reason_phrase.encode(),
                headers=headers,
            ),
            h11.Data(data=b"" if self._head_only else bytes(answer.body)),
            h11.EndOfMessage(),
        )

    def _send(self, *events: h11.Event) -> None:
        self._connection.write_http(b"".join(self._http.send(event) or b"" for event in events))
