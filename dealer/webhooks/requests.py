"""HTTP client of webhooks: POST, and the status of the answer.

A receiver may be slow, hostile or gone, so an attempt has one deadline, no redirect is followed,
and of an answer at most about `MAX_ANSWER` bytes are read. A connection is used again if the answer
was read to its end.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache

import h11

from dealer.outgoing import Attempts, NotConnected
from dealer.webhooks.addresses import Resolve, Target, checked_addresses, system_resolve

DEADLINE_SECONDS = 10.0
"""Seconds for one request: name, connection, TLS, request and answer."""

CONNECTED_SECONDS = 8.0
"""Seconds of those for the connection with its TLS, at whichever address of the name."""

MAX_ANSWER = 16 * 1024
"""Bytes of an answer, with its head, that are read."""

IDLE_CONNECTIONS = 8

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RequestFailed(Exception):
    """No answer to a request; its text says why, for operators."""


class HttpPoster:
    """Sends requests to one target; call `close` at the end."""

    def __init__(
        self, target: Target, *, allow_private: bool, resolve: Resolve = system_resolve
    ) -> None:
        self._target = target
        self._allow_private = allow_private
        self._resolve = resolve
        self._idle: list[_Connection] = []

    async def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer; raises RequestFailed, or AddressRefused."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while self._idle:
                    # The receiver may have closed it: then the request is sent again.
                    try:
                        return await self._exchange(self._idle.pop(), headers, body)
                    except (OSError, EOFError):
                        continue
                return await self._exchange(await self._connect(), headers, body)
        except TimeoutError:
            raise RequestFailed(f"no answer within {DEADLINE_SECONDS:.0f} s") from None
        except NotConnected as error:
            raise RequestFailed(str(error)) from None
        except (OSError, EOFError) as error:
            raise RequestFailed(_described(error)) from None
        except h11.RemoteProtocolError:
            raise RequestFailed("the answer is not HTTP, or its head is too long") from None

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.transport.abort()

    async def _connect(self) -> _Connection:
        target = self._target
        addresses = await checked_addresses(
            target, self._resolve, allow_private=self._allow_private
        )
        attempts = Attempts(addresses, seconds=CONNECTED_SECONDS)
        for address, seconds in attempts:
            try:
                async with asyncio.timeout(seconds):
                    # Certificates are checked for the name of the URL, not for the address.
                    return await asyncio.open_connection(
                        address,
                        target.port,
                        limit=MAX_ANSWER,
                        ssl=_tls() if target.tls else None,
                        server_hostname=target.host if target.tls else None,
                    )
            except OSError as error:
                attempts.failed(address, error)
        raise attempts.failure()

    async def _exchange(
        self, connection: _Connection, headers: Mapping[str, str], body: bytes
    ) -> int:
        reader, writer = connection
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_ANSWER)
        kept = False
        try:
            host, length = ("Host", self._target.authority), ("Content-Length", str(len(body)))
            request = h11.Request(
                method="POST", target=self._target.path, headers=[host, *headers.items(), length]
            )
            parts = (request, h11.Data(data=body), h11.EndOfMessage())
            writer.write(b"".join(http.send(part) or b"" for part in parts))
            await writer.drain()
            status = await _status(http, reader)
            ended = http.our_state is http.their_state is h11.DONE
            kept = ended and len(self._idle) < IDLE_CONNECTIONS
            if kept:
                self._idle.append(connection)
            return status
        finally:
            if not kept:
                # Without waiting: a receiver that does not read would delay it.
                writer.transport.abort()


async def _status(http: h11.Connection, reader: asyncio.StreamReader) -> int:
    """The status of the answer, read to its end if that has at most `MAX_ANSWER` bytes.

    Raises h11.RemoteProtocolError if it is not HTTP, EOFError or OSError if the connection is
    closed before its head.
    """
    status, length = None, 0
    while True:
        event = http.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
            names = {name for name, _ in event.headers}
            if not names & {b"content-length", b"transfer-encoding"} and status != 204:
                return status  # the body ends with the connection, maybe never
        elif isinstance(event, h11.EndOfMessage) and status is not None:
            return status
        elif event is h11.NEED_DATA:
            data = await reader.read(MAX_ANSWER)
            length += len(data)
            if status is not None and (not data or length > MAX_ANSWER):
                return status
            if not data:
                raise EOFError
            http.receive_data(data)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _described(error: Exception) -> str:
    if isinstance(error, EOFError | ConnectionError):
        return "the connection was closed without an answer"
    return f"no connection: {getattr(error, 'strerror', None) or error}"
