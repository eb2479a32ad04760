"""A plain HTTP client that returns a response as it was sent."""

from __future__ import annotations

import asyncio


class HttpResponse:
    """A response: status, headers by lower-case name, and the body without its chunks' sizes."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        if self.body and self.headers.get("transfer-encoding") == "chunked":
            self.body = b"".join(self._chunks(self.body))

    @staticmethod
    def _chunks(data: bytes) -> list[bytes]:
        chunks: list[bytes] = []
        while True:
            size, _, data = data.partition(b"\r\n")
            length = int(size, 16)
            if length == 0:
                assert data == b"\r\n"
                return chunks
            chunks.append(data[:length])
            assert data[length : length + 2] == b"\r\n"
            data = data[length + 2 :]

    @property
    def text(self) -> str:
        return self.body.decode()


async def get(
    port: int,
    path: str,
    *,
    method: str = "GET",
    version: str = "1.1",
    host: str = "localhost",
    **headers: str,
) -> HttpResponse:
    """Send a request on a connection of its own; a `_` in the name of a header is a `-`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{method} {path} HTTP/{version}", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    raw = await reader.read()
    writer.close()
    return HttpResponse(raw)
