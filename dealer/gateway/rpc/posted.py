"""One request over HTTP: a session that lasts for the request, and pushes nothing.

It runs in the same dispatcher as the requests of a WebSocket, so that both have the same methods,
limits and metrics. What a session keeps between requests (its tables and tokens) is not kept here:
requests of several clients may follow each other on one connection of a proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from msgspec import Struct

from dealer.errors import DealerError, RateLimited
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.rpc.dispatcher import Dispatcher
from dealer.gateway.rpc.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.service.identity.service_keys import ServiceKey


class PostedAnswer(NamedTuple):
    """The answer to a request: its JSON text, None where the request wants no answer.

    `retry_after_ms` is set where a rate was exceeded. With `ends` the client exceeds it so often
    that its connection is closed.
    """

    payload: bytes | None = None
    retry_after_ms: int | None = None
    ends: bool = False


class NoTransport:
    """The transport of a request over HTTP: what is pushed goes nowhere."""

    paused = False

    def __init__(
        self,
        address: str,
        budget: ClientBudget,
        end: Callable[[], None],
        abort: Callable[[], None],
    ) -> None:
        self.address = address
        self.budget = budget
        self.abort = abort
        self._end = end

    def charge_to(self, budget: ClientBudget, key: ServiceKey) -> None:
        """Count the rest of the request as one of this service key."""
        self.budget = budget

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> bool:
        return True

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close_with(self, code: CloseCode, reason: str) -> None:
        self._end()


class PostedSession(Session):
    """The session of one request; `on_answer` is called once, when the request is done."""

    pushes = False

    def __init__(
        self,
        context: GatewayContext,
        transport: NoTransport,
        *,
        service_key: ServiceKey | None,
        on_answer: Callable[[PostedAnswer], None],
    ) -> None:
        super().__init__(context, transport, service_key=service_key)
        self._on_answer: Callable[[PostedAnswer], None] | None = on_answer
        self._retry_after_ms: int | None = None

    def finish(self, payload: bytes | None = None, *, ends: bool = False) -> None:
        """Give the answer, unless it was given."""
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(PostedAnswer(payload, self._retry_after_ms, ends))

    def limit(self, id: bytes | None, method: str, wait: float) -> None:
        super().limit(id, method, wait)
        self.finish()

    def answer(self, call: wire.Call, answer: Struct, *, held: bytes = b"") -> None:
        payload = None if call.id is None else wire.result(call.id, answer)
        self.context.metrics.answered(call.method, "ok", perf_counter() - call.received)
        self.finish(payload)

    def fail(self, call: wire.Call, error: Exception) -> None:
        if isinstance(error, RateLimited):
            self._retry_after_ms = error.retry_after_ms
        super().fail(call, error)
        self.finish()

    def refuse(self, id: bytes, error: DealerError) -> None:
        if isinstance(error, RateLimited):
            self._retry_after_ms = error.retry_after_ms
        super().refuse(id, error)

    def send(self, payload: bytes) -> None:
        self.finish(payload)


def run_posted(
    context: GatewayContext,
    data: bytes,
    *,
    address: str,
    budget: ClientBudget,
    service_key: ServiceKey | None,
    on_answer: Callable[[PostedAnswer], None],
    abort: Callable[[], None],
) -> None:
    """Run the request in `data`; `on_answer` is called with its answer, now or later.

    `budget` is that of the client's `address`, or of its valid `service_key`. Where the request
    cannot be answered, `abort` is called, which closes its connection.
    """
    loop = asyncio.get_running_loop()

    def answered(answer: PostedAnswer) -> None:
        loop.call_soon(dispatcher.close)  # not within the step that answers
        on_answer(answer)

    transport = NoTransport(address, budget, lambda: session.finish(ends=True), abort)
    session = PostedSession(context, transport, service_key=service_key, on_answer=answered)
    dispatcher = Dispatcher(session)
    dispatcher.receive(data)
    if not dispatcher.request_seen:
        session.finish()  # it has no id, and could not be decoded
