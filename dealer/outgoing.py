"""Outgoing connections: every address of a name in its turn, within one bound of time.

A name may have an address at which nothing listens, such as ::1, or that no packet reaches. So each
address is tried for a short time, and a failure names all that were tried, with what each said.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from time import monotonic

CONNECT_SECONDS = 2.0
"""Seconds for one address at most, unless it is the last: that one gets what is left."""

ADDRESSES = 8
"""Addresses of one name that are tried."""


class NotConnected(OSError):
    """No address could be connected to; the text says for each why not."""


class Attempts:
    """Attempts to connect to addresses, within `seconds` together.

    for address, seconds in attempts:
        try:
            return … address …, within these seconds
        except OSError as error:
            attempts.failed(address, error)
    raise attempts.failure()
    """

    def __init__(self, addresses: Sequence[str], *, seconds: float) -> None:
        self._addresses = addresses[:ADDRESSES]
        self._seconds = seconds
        self._problems: list[str] = []

    def __iter__(self) -> Iterator[tuple[str, float]]:
        ends = monotonic() + self._seconds
        for number, address in enumerate(self._addresses):
            left = max(0.0, ends - monotonic())
            after = len(self._addresses) - number - 1
            yield address, min(CONNECT_SECONDS, left / (after + 1)) if after else left

    def failed(self, address: str, error: OSError) -> None:
        """Note why there is no connection to an address."""
        self._problems.append(f"{address}: {_described(error)}")

    def failure(self) -> NotConnected:
        """What was tried."""
        return NotConnected(f"no connection to {'; '.join(self._problems) or 'any address'}")


def _described(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionError):
        return "the connection was closed"
    return error.strerror or "it was not reached"
