"""How many may ask at one time for what takes long to make or to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from websockets.http11 import Response

from dealer.gateway.http import response

ASKERS = 32
ASKERS_OF_ADDRESS = 4


class Crowded(Exception):
    """Too many ask already; its text says what of."""

    def answer(self) -> Response:
        sentence = f"Many ask for {self} just now; try again later.\n"
        return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence, Retry_After="5")


class Askers:
    """Who asks for `what`: at most 32 at one time, and 4 of one address."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._asking: Counter[str] = Counter()  # by address; gone or not, until it is over

    @contextmanager
    def admitted(self, address: str) -> Iterator[None]:
        """Raise Crowded unless there is room for one more."""
        if self._asking[address] >= ASKERS_OF_ADDRESS or self._asking.total() >= ASKERS:
            raise Crowded(self._what)
        self._asking[address] += 1
        try:
            yield
        finally:
            self._asking -= Counter([address])
