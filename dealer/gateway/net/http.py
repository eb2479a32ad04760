"""One request in HTTP/1.1 (RFC 9112) and its answer, by h11 and without input or output.

    exchange = HttpExchange(...)
    exchange.receive_head(data) …  → True: `request` is there, without its body
    exchange.receive_body(data) …  → True: `body` is complete
    exchange.answer(response)      → the bytes to send

What programs in front of this one may read in another way is refused before h11 reads it, because
h11 would accept it: bare LF, folded lines, a transfer coding in HTTP/1.0.

The target of `request` is a path in one form, whichever of its forms a client sends: without
scheme and host, which count as the header Host (section 3.2.2); without escapes of characters that
need none; with single slashes. A proxy may serve this program under a path, and pass that path on
or not: the target is without it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import unquote

import h11
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from dealer.gateway.net.responses import response

MAX_HEAD = 32 * 1024
"""Bytes of a head that are buffered; a longer one is refused."""

MAX_HEADERS = 128

MAX_CHUNKS = 256
"""Chunks of one body: each takes time, however small it is."""

ROOT = "/"
"""The path of a server that has an origin of its own."""

CHUNKED = -1
"""Instead of a body's length: the body is chunked."""

NO_BARE_LF = "The lines of a request's head end with CR and LF.\n"
NO_REQUEST_LINE = (
    "A request begins with a line like `GET /path HTTP/1.1`, in ASCII and with single spaces.\n"
)
NO_HEADER = "After its first line a request's head has lines like `Name: value`, none folded.\n"
NO_HOST = "A request in HTTP/1.1 has the header Host.\n"
NO_CODING = "A body in HTTP/1.0 has a Content-Length and no Transfer-Encoding.\n"
TWO_LENGTHS = "A request has either Content-Length or Transfer-Encoding.\n"

_END = b"\r\n\r\n"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BARE_LF = re.compile(rb"(?<!\r)\n")
_REQUEST_LINE = re.compile(_TOKEN + rb" [!-~]+ HTTP/1\.(?P<minor>[01])\r\n")
_HEADERS = re.compile(rb"(?:" + _TOKEN + rb":[\t -~\x80-\xff]*\r\n)*\r\n")
_HOST = re.compile(rb"\r\nhost:", re.IGNORECASE)
_ABSOLUTE = re.compile(r"(?:http|ws)s?://(?P<host>[^/?#@]+)(?P<target>([/?#].*)?)", re.IGNORECASE)
_UNRESERVED = r"%(?:2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f|7e)"
_SAME = re.compile(rf"{_UNRESERVED}|//+", re.IGNORECASE)
"""What is written in two ways: an unreserved character (RFC 3986, 2.3), and a slash."""

_CODING = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
_BODY = re.compile(rb"\r\n(?:content-length|transfer-encoding|expect):", re.IGNORECASE)


class EarlyAnswer(Exception):
    """A request is not read to its end: `answer` says why, and nothing may follow it."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.answer = response(status, sentence)


class HttpExchange:
    """A request with a body of at most `longest` bytes, to a server under `path`.

    `request` is None until its head is complete. `body_length` is what the head says of the body:
    its bytes, or CHUNKED. Whatever raises EarlyAnswer can still `answer`. The connection decides by
    the head whether it is `kept` after the answer, and on a `refusal`.
    """

    def __init__(self, longest: int, path: str) -> None:
        self.request: Request | None = None
        self.body_length = 0
        self.body = bytearray()
        self.kept = False
        self.refusal: Response | None = None
        self._longest = longest
        self._path = path
        self._head = bytearray()
        self._chunks = 0
        self._two_lengths = False
        self._http: h11.Connection | None = None  # made with the head: a flood sends none
        self._upgrade = b""  # the head of a handshake that h11 has not read, and what follows it

    @property
    def head_only(self) -> bool:
        """Whether the answer has no body, because the request is HEAD."""
        return self.request is not None and self.request.method == "HEAD"

    @property
    def waits_for_continue(self) -> bool:
        """Whether the client sends its body only after `100 Continue`."""
        return not self._upgrade and self._h11.they_are_waiting_for_100_continue

    @property
    def done(self) -> bool:
        """Whether both sides said all, so that another request may follow."""
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    @property
    def left(self) -> bytes:
        """What was received after the request."""
        if self._upgrade:
            return self._upgrade.partition(_END)[2]
        return bytes(self._h11.trailing_data[0])

    @property
    def _h11(self) -> h11.Connection:
        if self._http is None:
            self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
            if self._upgrade:  # it gets an answer that is no upgrade
                self._http.receive_data(self._upgrade)
                self._upgrade = b""
                self._http.next_event()  # the request
                self._http.next_event()  # its end
        return self._http

    # The request

    def receive_head(self, data: bytes) -> bool:
        """Take the next bytes of the head, and maybe of what follows it; True once it is complete.

        Raises EarlyAnswer, as soon as what has arrived cannot become a valid head.
        """
        head = self._head
        searched = max(len(head) - len(_END), 0)
        head += data
        while head.startswith(b"\r\n"):  # an empty line before a request, see section 2.2
            del head[:2]
        end = head.find(_END, searched)
        if end < 0:
            if fault := _beginning_fault(head, searched):
                raise EarlyAnswer(HTTPStatus.BAD_REQUEST, fault)
            if len(head) > MAX_HEAD:
                sentence = f"The head of a request may have at most {MAX_HEAD} bytes.\n"
                raise EarlyAnswer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)
            return False
        if fault := _fault(bytes(head[: end + len(_END)])):
            raise EarlyAnswer(HTTPStatus.BAD_REQUEST, fault)
        if head.count(b"\n", 0, end) > MAX_HEADERS:
            sentence = f"A request may have at most {MAX_HEADERS} headers.\n"
            raise EarlyAnswer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)
        self._head = bytearray()
        whole = bytes(head[: end + len(_END)])
        if _is_plain_upgrade(whole):
            self._upgrade = bytes(head)
            self.request = _read_head(whole, self._path)
            return True
        self._h11.receive_data(bytes(head))
        event = self._next_event()
        assert isinstance(event, h11.Request)
        self._begin(event)
        return True

    def _begin(self, head: h11.Request) -> None:
        named = [(name.decode(), value.decode("latin-1")) for name, value in head.headers]
        headers = Headers(named)
        protocol = f"HTTP/{head.http_version.decode()}"
        self.request = _request(
            self._path, head.target.decode(), headers, head.method.decode(), protocol
        )
        lengths = headers.get_all("Content-Length")
        if "Transfer-Encoding" in headers:
            self.body_length = CHUNKED
            self._two_lengths = bool(lengths)
        elif lengths:  # h11 has checked that it is one number
            self.body_length = int(lengths[0])

    def receive_body(self, data: bytes) -> bool:
        """Take the next bytes; True once the body is complete. Raises EarlyAnswer."""
        if self._upgrade:
            return True
        if self._two_lengths:
            raise EarlyAnswer(HTTPStatus.BAD_REQUEST, TWO_LENGTHS)
        if self.body_length > self._longest:
            raise self._too_large()
        if data:
            self._h11.receive_data(data)
        while True:
            event = self._next_event()
            if not isinstance(event, h11.Data):
                return isinstance(event, h11.EndOfMessage)
            self.body += event.data
            self._chunks += event.chunk_start
            if len(self.body) > self._longest or self._chunks > MAX_CHUNKS:
                raise self._too_large()

    def _too_large(self) -> EarlyAnswer:
        sentence = f"A request may have at most {self._longest} bytes, in {MAX_CHUNKS} chunks.\n"
        return EarlyAnswer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)

    def _next_event(self) -> object:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            raise EarlyAnswer(status, f"This is not a valid request: {error}.\n") from None

    # The answer: each returns the bytes to send

    def go_on(self) -> bytes:
        """`100 Continue`."""
        return self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def answer(self, answer: Response, *, close: bool) -> bytes:
        """A whole answer; with `close` it says that the connection ends."""
        head = self._response(answer, close=close)
        return self._send(head, *self._data(bytes(answer.body)), h11.EndOfMessage())

    def begin_answer(self, answer: Response, block: bytes) -> bytes:
        """The head of a long answer, after which the connection ends, and its first bytes."""
        return self._send(self._response(answer, close=True), *self._data(block))

    def go_on_answering(self, block: bytes) -> bytes:
        return self._send(*self._data(block))

    def end_answer(self) -> bytes:
        return self._send(h11.EndOfMessage())

    def _data(self, block: bytes) -> list[h11.Data]:
        return [h11.Data(data=block)] if block and not self.head_only else []

    def _response(self, answer: Response, *, close: bool) -> h11.Response:
        headers = [
            (name, value) for name, value in answer.headers.raw_items() if name != "Connection"
        ]
        if close:
            headers.append(("Connection", "close"))
        reason = answer.reason_phrase.encode()
        return h11.Response(status_code=answer.status_code, reason=reason, headers=headers)

    def _send(self, *events: h11.Event) -> bytes:
        return b"".join(self._h11.send(event) or b"" for event in events)


def _beginning_fault(head: bytearray, searched: int) -> str | None:
    """Why what has arrived of a head cannot become a valid one; None if it can.

    Bare LFs are looked for from the index `searched` on. Headers are left to `_fault`.
    """
    if b"\n" not in head:
        return None
    if _BARE_LF.search(head, searched):
        return NO_BARE_LF
    return None if _REQUEST_LINE.match(head) else NO_REQUEST_LINE


def _request(path: str, target: str, headers: Headers, method: str, protocol: str) -> Request:
    """A request to a server under `path`, which a proxy may have passed on or not."""
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        target = absolute["target"]
        if len(headers.get_all("Host")) < 2:  # two are refused
            headers.pop("Host", None)
            headers["Host"] = absolute["host"]
    named, mark, query = target.partition("?")
    target = _SAME.sub(lambda same: unquote(same[0])[0], named or ROOT) + mark + query
    below = target[len(path) - 1 :] if target.startswith(path) else target
    return Request(below, headers, method, protocol)


def _is_plain_upgrade(head: bytes) -> bool:
    """Whether a valid head is a handshake, without a body, to which h11 would add nothing.

    Many clients come back at the same time, and h11 takes longer than all else that is done then.
    """
    return (
        head.startswith(b"GET ")
        and _UPGRADE.search(head) is not None
        and _BODY.search(head) is None
        and len(_HOST.findall(head)) == 1
        and head.find(b" HTTP/1.1\r\n") > 0
    )


def _read_head(head: bytes, path: str) -> Request:
    """The request of a valid head, without a body."""
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    _, target, protocol = first.split(" ")
    headers = Headers()
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip(" \t")
    return _request(path, target, headers, "GET", protocol)


def _fault(head: bytes) -> str | None:
    """Why a complete head is not valid; None if it is."""
    if _BARE_LF.search(head):
        return NO_BARE_LF
    first = _REQUEST_LINE.match(head)
    if first is None:
        return NO_REQUEST_LINE
    if not _HEADERS.fullmatch(head, first.end()):
        return NO_HEADER
    if first["minor"] == b"1":
        return None if _HOST.search(head) else NO_HOST
    return NO_CODING if _CODING.search(head) else None
