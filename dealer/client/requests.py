"""Pending JSON-RPC requests, the retry policy, and errors as exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dealer import errors
from dealer.backoff import jittered
from dealer.errors import RateLimited, Refused

Members = dict[str, Any]
Request = tuple[str, Members]
"""The method of a request and its parameters."""

Answered = Callable[[Members], None]

NOT_RETRIED = (errors.ShuffleRunning, errors.Disabled)
"""Temporary refusals that are not retried: they last longer than a retry would wait."""


@dataclass(kw_only=True, eq=False)
class RetryPolicy:
    """Timeouts in seconds, and the backoff and number of retries.

    `open` is the time until a socket is open, `silence` that without a frame before a ping is sent,
    `answer` that for the pong or for a write, after which the socket is dropped. `backoff` comes
    before the first reconnect and is doubled each time, up to `backoff_max`, with jitter. After
    `away` without a connection the client gives up. A request that is temporarily refused is sent
    `attempts` times.
    """

    open: float = 10.0
    silence: float = 20.0
    answer: float = 10.0
    backoff: float = 0.2
    backoff_max: float = 10.0
    away: float = 300.0
    attempts: int = 8


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request without an answer; `answered` runs in frame order, before the caller wakes."""

    id: int
    method: str
    params: Members
    future: asyncio.Future[Members]
    answered: Answered | None
    table: str | None  # sent after the socket is subscribed to it; None: immediately
    attempts: int = 0
    sent: bool = False
    timer: asyncio.TimerHandle | None = None

    def frame(self) -> Members:
        """The JSON-RPC request."""
        return {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params}

    def pause(self, error: Refused, patience: RetryPolicy) -> float | None:
        """Seconds until the request is sent again after this refusal; None if it is final.

        A request with `expect` would fail again; RemoteTable itself waits for a running shuffle.
        """
        self.attempts += 1
        stale = isinstance(error, errors.VersionConflict) and "expect" in self.params
        retry = error.temporary and not stale and not isinstance(error, NOT_RETRIED)
        if not retry or self.attempts >= patience.attempts:
            return None
        wait = jittered(patience.backoff * 2**self.attempts)
        return wait + error.retry_after_ms / 1000 if isinstance(error, RateLimited) else wait


def refusal(error: Members) -> Refused:
    """The exception for a JSON-RPC error object."""
    data = error.get("data") or {}
    reason = data.get("reason")
    sentence = str(error.get("message", "The server refused the request."))
    kind = errors.REFUSALS.get(str(reason))
    if kind is RateLimited:
        return RateLimited(sentence, retry_after_ms=data.get("retry_after_ms", 1000))
    if kind is not None:
        return kind(sentence)
    code = error.get("code", 0)
    if code == -32603:
        return errors.Unavailable(sentence)
    if code < 0:
        return errors.BadRequest(sentence)
    other = Refused(sentence)
    other.reason, other.code = str(reason or Refused.reason), code
    other.temporary = bool(data.get("temporary"))
    return other


def forget(future: asyncio.Future[Members]) -> None:
    """Retrieve the result of a future without a waiter, so that asyncio logs no warning."""
    if not future.cancelled():
        future.exception()
