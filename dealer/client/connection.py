"""The connection to a house: reconnects automatically and repeats requests without an answer.

A request is pending until it is answered, across any number of sockets. A command carries its own
id (`cmd`), so the server executes it once, however often it is sent.

Its WebSocket is aborted when the server no longer answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from dealer.backoff import Backoff
from dealer.client.requests import Answered, Members, PendingRequest, RetryPolicy, forget, refusal
from dealer.errors import (
    BadRequest,
    ConfigurationError,
    DealerError,
    HouseUnreachable,
    RateLimited,
    Refused,
    SessionEnded,
)

SUBPROTOCOL = Subprotocol("dealer.v1")
FRAME_MAX = 16 * 2**20
ABNORMAL_CLOSURE = 1006
CLOSING_SECONDS = 1.0
UNAUTHORIZED = 401
NO_WEBSOCKET = frozenset({200, 404, 405, 410, 426})
"""HTTP statuses of an address that has something else than a WebSocket, or nothing."""
KEY_REFUSED = 4401

_SUCH = "its address is like ws://127.0.0.1:8080/ws, or wss://dealer.example/ws."

FINAL = {
    KEY_REFUSED: "The server no longer accepts this client's key or link.",
    4403: "The server does not admit this client.",
    4408: "The server closed the connection because no request came in time.",
    4409: "A newer connection has taken over this seat.",
    1009: "The server closed the connection because a message was too long.",
}
"""Close codes after which the client does not reconnect, and what each means."""


class Socket:
    """An open WebSocket: `send` queues a text, `read` receives frames until it is closed."""

    def __init__(self, socket: ClientConnection, patience: RetryPolicy) -> None:
        self._socket = socket
        self._patience = patience
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._received_at = 0.0

    @classmethod
    async def open(cls, url: str, patience: RetryPolicy, key: str | None = None) -> Socket:
        """Open a socket, with a service key; HouseUnreachable if that fails.

        Raises ConfigurationError if the address has no WebSocket, SessionEnded if the server does
        not accept the key.
        """
        try:
            socket = await dial(
                url,
                subprotocols=[SUBPROTOCOL],
                compression=None,
                max_size=FRAME_MAX,
                open_timeout=patience.open,
                ping_interval=None,
                close_timeout=CLOSING_SECONDS,
                proxy=None,
                additional_headers=None if key is None else {"Authorization": f"Bearer {key}"},
            )
        except InvalidURI as error:
            raise ConfigurationError(f"There is no WebSocket at {url}: {_SUCH}") from error
        except InvalidStatus as error:
            if key is not None and error.response.status_code == UNAUTHORIZED:
                sentence = "The server does not accept this service key."
                raise SessionEnded(sentence, code=KEY_REFUSED) from None
            if error.response.status_code in NO_WEBSOCKET:
                raise ConfigurationError(f"There is no WebSocket at {url}: {_SUCH}") from error
            raise HouseUnreachable(f"The server at {url} does not answer: {error}.") from error
        except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
            reason = str(error) or "no answer in time"
            raise HouseUnreachable(f"The server at {url} does not answer: {reason}") from error
        return cls(socket, patience)

    def send(self, text: str) -> None:
        """Queue a text frame."""
        self._outbox.put_nowait(text)

    def abort(self) -> None:
        """Drop the connection immediately."""
        self._socket.transport.abort()

    async def close(self) -> None:
        """Close the connection, with a short timeout for the closing handshake."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._socket.close()

    async def read(self, receive: Callable[[str | bytes], None]) -> int:
        """Pass every frame to `receive`; the close code."""
        loop = asyncio.get_running_loop()
        self._received_at = loop.time()
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_alive())]
        try:
            async for text in self._socket:
                self._received_at = loop.time()
                receive(text)
        except ConnectionClosed:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # websockets would wait for a peer that has stopped reading: no closing handshake here.
            self.abort()
        return self._socket.close_code or ABNORMAL_CLOSURE

    async def _write(self) -> None:
        try:
            while True:
                text = await self._outbox.get()
                async with asyncio.timeout(self._patience.answer):
                    await self._socket.send(text)
        except (TimeoutError, ConnectionClosed):
            self.abort()

    async def _keep_alive(self) -> None:
        loop, silence = asyncio.get_running_loop(), self._patience.silence
        try:
            while True:
                await asyncio.sleep(max(self._received_at + silence - loop.time(), 0.01))
                if loop.time() - self._received_at < silence:
                    continue
                async with asyncio.timeout(self._patience.answer):
                    await (await self._socket.ping())
                self._received_at = loop.time()
        except (TimeoutError, ConnectionClosed):
            self.abort()


_log = logging.getLogger(__name__)

_TABLE_ID = re.compile(r"[0-9a-f]{32}")


def require_table_id(table: str) -> str:
    """The id itself; BadRequest if it cannot be a table's."""
    if not _TABLE_ID.fullmatch(table):
        raise BadRequest("A table's id has 32 hexadecimal digits (0-9, a-f): copy it whole.")
    return table


class ServerAddress:
    """The address of a WebSocket: `…/ws`, or `…/ws/<table>` for a load balancer to hash on.

    `server` is the URL that the user gave; an id that is no table's is never put into it.
    """

    def __init__(self, server: str, table: str | None = None) -> None:
        self._server = server
        self._table: str | None = None
        if table is not None:
            self.route_to(table)

    def route_to(self, table: str) -> bool:
        """Use this table's address from now on; whether that is another one than before."""
        if table == self._table or not _TABLE_ID.fullmatch(table):
            return False
        before, self._table = self.url, table
        return self.url != before

    @property
    def url(self) -> str:
        """The URL to connect to; the server's own if that does not end in `/ws`."""
        parts = urlsplit(self._server)
        path = parts.path.rstrip("/")
        if self._table is None or not path.endswith("/ws"):
            return self._server
        return urlunsplit(parts._replace(path=f"{path}/{self._table}"))


class FrameHandler(Protocol):
    """Receives the frames of one table."""

    def attach(self) -> None:
        """A new socket is open: resume after the last event."""

    @property
    def over(self) -> bool:
        """Whether the table is closed, so that no more events will come."""

    def notified(self, method: str, params: Members) -> None:
        """Handle a notification about this table."""

    def end(self, error: DealerError) -> None:
        """The connection has ended permanently."""


class Connection:
    """A connection to the server at `url` (ws:// or wss://), opened by `start`.

    Its sockets are opened at the address of `table`, or of the first table that it follows; with
    `key`, as a service.
    """

    def __init__(
        self,
        url: str,
        *,
        table: str | None = None,
        patience: RetryPolicy | None = None,
        key: str | None = None,
    ) -> None:
        self.url = url
        self._key = key
        self._address = ServerAddress(url, table)
        self.patience: RetryPolicy = patience or RetryPolicy()
        self.handlers: dict[str, FrameHandler] = {}
        self.attached: set[str] = set()
        self._held_back = False  # whether it was logged that the rate limit holds this client back
        self.sockets: int = 0  # opened so far
        self._requests: dict[int, PendingRequest] = {}
        self._next_id = 0
        self._socket: Socket | None = None
        self._not_before: float | None = None  # when a draining server is left, and not earlier
        self._backoff = Backoff(first=self.patience.backoff, longest=self.patience.backoff_max)
        self._lost_at = 0.0  # when the connection was lost; 0 while connected
        self._by_table = False  # whether the server asked for sockets at the tables' addresses
        self._moving: asyncio.Task[None] | None = None  # closes the socket of another address
        self._error: DealerError | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the first socket; ConfigurationError, HouseUnreachable or SessionEnded otherwise."""
        socket = await self._open()
        hello = self.ask("session.hello", {}, table=None, answered=self._greeted)
        self._task = asyncio.create_task(self._run(socket))
        try:
            async with asyncio.timeout(self.patience.open):
                await hello
        except TimeoutError as error:
            await self.close()
            sentence = f"The server at {self.url} does not answer like a dealer server."
            raise HouseUnreachable(sentence) from error

    async def close(self) -> None:
        """Close the connection; pending requests fail with HouseUnreachable."""
        self._give_up(HouseUnreachable("This client closed its connection."))
        if self._socket is not None:
            await self._socket.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def ask(
        self,
        method: str,
        params: Members,
        *,
        table: str | None,
        changes: bool = False,
        answered: Answered | None = None,
    ) -> asyncio.Future[Members]:
        """Send a request; a future of its result, across reconnects, or of its refusal.

        `changes` adds a `cmd`. With `table` it is sent when the socket is subscribed to it.
        `answered` is called with the result before any later frame is read.
        """
        future: asyncio.Future[Members] = asyncio.get_running_loop().create_future()
        if self._socket is None and self._task is None and self._error is None:
            raise ConfigurationError(
                "The connection is not open: use `async with connect(…)` or `await connect(…)`."
            )
        if self._error is not None:
            future.set_exception(self._error)
            return future
        if changes and "cmd" not in params:
            params = params | {"cmd": str(uuid.uuid4())}
        self._next_id += 1
        request = PendingRequest(self._next_id, method, params, future, answered, table)
        self._requests[request.id] = request
        future.add_done_callback(lambda _: self._requests.pop(request.id, None))
        self._send(request)
        return future

    def attach(self, table: str) -> None:
        """The socket is subscribed to this table: send the requests that waited for it."""
        self.attached.add(table)
        for request in list(self._requests.values()):
            if request.table == table:
                self._send(request)

    def drop(self, table: str, error: DealerError) -> None:
        """Forget a table: its requests fail and its frames are ignored."""
        self.handlers.pop(table, None)
        self.attached.discard(table)
        for request in list(self._requests.values()):
            if request.table == table and not request.future.done():
                request.future.set_exception(error)

    def route_to(self, table: str) -> None:
        """Open sockets at this table's address from now on, unless another table is followed.

        If the server asked for that, an open socket that awaits no answer is replaced.
        """
        if self.handlers.keys() - {table} or not self._address.route_to(table):
            return
        # Not earlier: nothing knows the table of `table.open`, a redirect by the server would need
        # the balancer's hash, and `connect` could not report a server that is down.
        idle = not any(request.sent for request in self._requests.values())
        if self._by_table and self._socket is not None and idle:
            self._moving = asyncio.create_task(self._socket.close())
            self._socket = None

    def drop_socket(self) -> None:
        """Drop the socket; the client reconnects automatically."""
        if self._socket is not None:
            self._socket.abort()

    def _send(self, request: PendingRequest) -> None:
        ready = request.table is None or request.table in self.attached
        if self._socket is None or request.sent or request.timer is not None or not ready:
            return
        request.sent = True
        self._socket.send(json.dumps(request.frame(), ensure_ascii=False))

    async def _run(self, socket: Socket) -> None:
        """Serve one socket after the other, until the server or this client ends the connection."""
        try:
            while True:
                code = await self._serve(socket)
                if code in FINAL:
                    self._give_up(SessionEnded(FINAL[code], code=code))
                if self._error is not None:
                    return
                socket = await self._reopen()
                self._resume()
        except DealerError as error:
            self._give_up(error)
        except Exception as error:
            _log.exception("the client failed")
            self._give_up(HouseUnreachable(f"This client failed: {error!r}"))

    def _resume(self) -> None:
        """After a reconnect: send hello, resume each table, then repeat pending requests.

        A closed table is resumed only for a pending request.
        """
        requests, self._requests = self._requests, {}
        awaited = {request.table for request in requests.values() if not request.future.done()}
        greeting = self.ask("session.hello", {}, table=None, answered=self._greeted)
        greeting.add_done_callback(forget)
        for table, handler in list(self.handlers.items()):
            if not handler.over or table in awaited:
                handler.attach()
        for request in requests.values():
            if not request.future.done():
                self._requests[request.id] = request
                self._send(request)

    async def _open(self) -> Socket:
        self._socket = await Socket.open(self._address.url, self.patience, self._key)
        self.sockets += 1
        return self._socket

    async def _reopen(self) -> Socket:
        """Open a new socket, with exponential backoff and jitter.

        The first attempt is immediate after a drain, whose server gives each client a time of its
        own, and after a move to another address.
        """
        loop = asyncio.get_running_loop()
        self._lost_at = self._lost_at or loop.time()
        while True:
            announced = self._not_before
            wait = 0.0 if announced is None else max(announced - loop.time(), 0.0)
            immediately = self._moving is not None or announced is not None
            pause = 0.0 if immediately else self._backoff.next_jittered()
            self._moving = self._not_before = None
            await asyncio.sleep(wait + pause)
            if loop.time() - self._lost_at > self.patience.away + wait:
                sentence = f"The server at {self.url} could not be reached for too long."
                raise HouseUnreachable(sentence)
            # A proxy may answer 404 for a while: there was a WebSocket at this address.
            with suppress(HouseUnreachable, ConfigurationError):
                return await self._open()

    def _greeted(self, result: Members) -> None:
        """The server answered: reset the backoff."""
        self._by_table = result.get("by_table") is True
        self._backoff = Backoff(first=self.patience.backoff, longest=self.patience.backoff_max)
        self._lost_at = 0.0

    async def _serve(self, socket: Socket) -> int:
        """Read a socket until it is closed; the close code."""
        try:
            return await socket.read(self._receive)
        finally:
            self._socket = None
            self.attached.clear()
            for request in self._requests.values():
                request.sent = False

    def _receive(self, text: str | bytes) -> None:
        try:
            frame = json.loads(text)
            if "method" in frame:
                self._notified(frame["method"], frame["params"])
            else:
                self._answered(frame)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            _log.warning("ignored a malformed frame: %r", error)

    def _notified(self, method: str, params: Members) -> None:
        if method == "session.drain":
            self._drain(params)
            return
        if method == "events":
            for event in params["list"]:
                self._notified("event", event)
            return
        handler = self.handlers.get(params["table"])
        if handler is not None:
            handler.notified(method, params)

    def _drain(self, params: Members) -> None:
        """The server is about to stop: reconnect after the time that it announced."""
        wait = params["reconnect_in_ms"] / 1000
        self._not_before = asyncio.get_running_loop().time() + min(wait, self.patience.away)

    def _answered(self, frame: Members) -> None:
        request = self._requests.get(frame["id"])
        if request is None or request.future.done():
            return
        if "error" in frame:
            self._refused(request, refusal(frame["error"]))
            return
        del self._requests[request.id]  # before `answered`, which may end a session's requests
        result = frame.get("result") or {}
        try:
            if request.answered is not None:
                request.answered(result)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            sentence = f"The server sent a malformed answer to {request.method}: {error!r}"
            request.future.set_exception(HouseUnreachable(sentence))
        except ConfigurationError as error:  # the store cannot be written
            request.future.set_exception(error)
        else:
            if not request.future.done():
                request.future.set_result(result)

    def _refused(self, request: PendingRequest, error: Refused) -> None:
        """Repeat a temporarily refused request under the same id."""
        pause = request.pause(error, self.patience)
        if pause is None:
            request.future.set_exception(error)
            return
        if isinstance(error, RateLimited) and not self._held_back:
            self._held_back = True
            _log.warning(
                "the rate limit of %s holds this client back: %s It asks again automatically, and "
                "this is said once.", self.url, error,
            )  # fmt: skip
        request.sent = False
        request.timer = asyncio.get_running_loop().call_later(pause, self._retry, request)

    def _retry(self, request: PendingRequest) -> None:
        request.timer = None
        if not request.future.done():
            self._send(request)

    def _give_up(self, error: DealerError) -> None:
        if self._error is not None:
            return
        self._error = error
        for handler in list(self.handlers.values()):
            handler.end(error)
        self.handlers.clear()
        for request in list(self._requests.values()):
            if request.timer is not None:
                request.timer.cancel()
            if not request.future.done():
                request.future.set_exception(error)
                request.future.exception()
