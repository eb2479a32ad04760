"""A website of another origin that shows pages of the server in a frame."""

from __future__ import annotations

import asyncio
from html import escape
from types import TracebackType


class FramingSite:
    """Serves one page, at any path, with a frame of the address `framed`.

    `sandbox` is the attribute of the frame; None for a frame without it.
    """

    def __init__(self) -> None:
        self.framed = ""
        self.sandbox: str | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> FramingSite:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)  # a browser may connect and send nothing
        sandbox = "" if self.sandbox is None else f' sandbox="{self.sandbox}"'
        page = (
            "<!doctype html><html lang=en><title>Game</title><link rel=icon href=data:,>"
            f'<iframe title="Table" src="{escape(self.framed)}" width="1000" height="700"{sandbox}>'
            "</iframe>"
        ).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + page)
        await writer.drain()
        writer.close()
