"""HTTP client of webhooks: POST, and the status of the answer.

A receiver may be slow, hostile or gone, so an attempt has one deadline, no redirect is followed,
and of an answer at most `MAX_ANSWER` bytes are read. A connection is used again if the answer has a
length and was read to its end.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache

from dealer.webhooks.addresses import Resolve, Target, checked_address, system_resolve

DEADLINE_SECONDS = 10.0
"""Seconds for one request: name, connection, TLS, request and answer."""

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
        except ssl.SSLCertVerificationError as error:
            raise RequestFailed(f"the certificate is not valid: {error.verify_message}") from None
        except (OSError, EOFError) as error:
            raise RequestFailed(_described(error)) from None
        except ValueError:
            raise RequestFailed("the answer is not HTTP, or its head is too long") from None

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.transport.abort()

    async def _connect(self) -> _Connection:
        target = self._target
        address = await checked_address(target, self._resolve, allow_private=self._allow_private)
        # Certificates are checked for the name of the URL, not for the address.
        return await asyncio.open_connection(
            address,
            target.port,
            limit=MAX_ANSWER,
            ssl=_tls() if target.tls else None,
            server_hostname=target.host if target.tls else None,
        )

    async def _exchange(
        self, connection: _Connection, headers: Mapping[str, str], body: bytes
    ) -> int:
        reader, writer = connection
        kept = False
        try:
            lines = [f"POST {self._target.path} HTTP/1.1", f"Host: {self._target.authority}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            lines += [f"Content-Length: {len(body)}", "", ""]
            writer.write("\r\n".join(lines).encode("ascii") + body)
            await writer.drain()
            status, length = await _answer(reader)
            if length is not None:
                await reader.readexactly(length)
                kept = len(self._idle) < IDLE_CONNECTIONS
                if kept:
                    self._idle.append(connection)
            return status
        finally:
            if not kept:
                # Without waiting: a receiver that does not read would delay it.
                writer.transport.abort()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int | None]:
    """Status and length of an answer; None for the length if the connection cannot be used again.

    Raises ValueError if it is not HTTP, EOFError or OSError if the connection is closed.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ValueError("too long") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdigit() or rest[3:4].strip():
        raise ValueError("not HTTP")
    status = int(rest[:3])
    if status < 200:
        raise ValueError("an interim answer")
    named = [line.partition(":") for line in lines if line]
    members = {name.strip().lower(): value.strip() for name, _, value in named}
    text = "0" if status == 204 else members.get("content-length", "")
    closes = "close" in members.get("connection", "").lower() or version == "HTTP/1.0"
    known = text.isascii() and text.isdigit() and "transfer-encoding" not in members
    if closes or not known or len(head) + int(text) > MAX_ANSWER:
        return status, None
    return status, int(text)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _described(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, EOFError | ConnectionError):
        return "the connection was closed without an answer"
    return f"no connection: {getattr(error, 'strerror', None) or type(error).__name__}"
