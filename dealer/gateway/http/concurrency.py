"""Limit of concurrent requests for answers that take long to make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from websockets.http11 import Response

from dealer.gateway.http.responses import response

MAX_CONCURRENT = 32
MAX_CONCURRENT_PER_ADDRESS = 4


class TooManyConcurrent(Exception):
    """Too many concurrent requests; its text names what was requested."""

    def answer(self) -> Response:
        sentence = f"Too many requests for {self} at the moment; try again later.\n"
        return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence, Retry_After="5")


class ConcurrencyLimit:
    """Limits concurrent requests for `what`, in total and per client address."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._active: Counter[str] = Counter()  # by address

    @contextmanager
    def admitted(self, address: str) -> Iterator[None]:
        """Count a request while the block runs; TooManyConcurrent if that exceeds a limit."""
        if (
            self._active[address] >= MAX_CONCURRENT_PER_ADDRESS
            or self._active.total() >= MAX_CONCURRENT
        ):
            raise TooManyConcurrent(self._what)
        self._active[address] += 1
        try:
            yield
        finally:
            self._active -= Counter([address])
