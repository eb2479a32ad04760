"""Limit of concurrent requests for answers that take long to make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dealer.errors import Overloaded

MAX_CONCURRENT = 32
MAX_CONCURRENT_PER_ADDRESS = 4


class ConcurrencyLimit:
    """Limits concurrent requests for `what`, in total and per client address."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._active: Counter[str] = Counter()  # by address

    @contextmanager
    def admitted(self, address: str) -> Iterator[None]:
        """Count a request while the block runs; Overloaded if that exceeds a limit."""
        if (
            self._active[address] >= MAX_CONCURRENT_PER_ADDRESS
            or self._active.total() >= MAX_CONCURRENT
        ):
            raise Overloaded(f"Too many requests for {self._what} at the moment; try again later.")
        self._active[address] += 1
        try:
            yield
        finally:
            self._active -= Counter([address])
