"""What a client asks, how long it waits, and what a refusal means."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dealer import errors
from dealer.errors import RateLimited, Refused

Members = dict[str, Any]
Answered = Callable[[Members], None]

REFUSALS: Mapping[str, type[Refused]] = {
    kind.reason: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refused) and kind is not errors.NotHost
}

FOR_A_WHILE = (errors.ShuffleRunning, errors.Disabled)
"""Refusals that pass, but not while one waits: whoever asked is told at once."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long this client waits for what, in seconds, and how often it asks again."""

    open: float = 10.0  # for a socket
    silence: float = 20.0  # without a frame, before it asks whether anybody is there
    answer: float = 10.0  # to that, or for a write; then the socket is given up
    backoff: float = 0.2  # before the first new attempt; doubled each time, with jitter
    backoff_max: float = 10.0
    away: float = 300.0  # without any connection, before it gives the house up
    attempts: int = 8  # for one question that is refused for the moment


@dataclass(eq=False, slots=True)
class Question:
    """A request on its way; `answered` runs in the order of frames, before the caller wakes."""

    id: int
    method: str
    params: Members
    future: asyncio.Future[Members]
    answered: Answered | None
    table: str | None  # sent once this table is followed on the socket; None: at once
    attempts: int = 0
    sent: bool = False
    timer: asyncio.TimerHandle | None = None

    def frame(self) -> Members:
        """The JSON-RPC request."""
        return {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params}

    def pause(self, error: Refused, patience: Patience) -> float | None:
        """Seconds until it may be asked again after this refusal; None if that is of no use.

        An `expect` would fail again, and when a shuffle is over the table knows better.
        """
        self.attempts += 1
        stale = isinstance(error, errors.Conflicted) and "expect" in self.params
        again = error.temporary and not stale and not isinstance(error, FOR_A_WHILE)
        if not again or self.attempts >= patience.attempts:
            return None
        wait = jittered(patience.backoff * 2**self.attempts)
        return wait + error.retry_after_ms / 1000 if isinstance(error, RateLimited) else wait


def refusal(error: Members) -> Refused:
    """The exception that a JSON-RPC error object stands for."""
    data = error.get("data") or {}
    reason, sentence = data.get("reason"), str(error.get("message", "The house refused."))
    kind = REFUSALS.get(str(reason))
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
    """Take note of an answer that nobody waits for, so that no warning is made of it."""
    if not future.cancelled():
        future.exception()


def jittered(seconds: float) -> float:
    """Any time up to so many seconds, so that not all who wait come back at once."""
    return seconds * secrets.randbelow(1000) / 1000
