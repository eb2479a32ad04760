"""WebSocket (RFC 6455): the handshake and the frames, by the sans-I/O protocol of websockets.

Nearly all that clients send is one masked text frame, whole and alone in what is read from the
socket: that is parsed here, without the library. So is the usual handshake answered: after a crash
all clients come back at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from functools import cached_property
from typing import Protocol

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.utils import accept_key

from dealer.gateway.close_codes import CloseCode

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled part of websockets

    def apply_mask(data: bytes | bytearray | memoryview, mask: bytes | bytearray) -> bytes:
        size = len(data)
        repeated = (mask * (size // 4 + 1))[:size]
        return (int.from_bytes(data) ^ int.from_bytes(repeated)).to_bytes(size)


PING_FRAME = b"\x89\x00"
PONG = 0x80 | Opcode.PONG
"""First byte of a pong."""

SLICE = 4096
"""Bytes of many small frames that are read between two checks whether the connection is closed."""

MAX_FRAGMENTS = 64
"""Fragments of one message; its size has its own limit, but fragments may be empty."""

_FINAL_TEXT = 0x80 | Opcode.TEXT
_MASKED = 0x80
_LENGTH = 0x7F

# Debug messages of websockets contain frames, and frames may contain secrets.
_quiet = logging.getLogger("dealer.gateway.socket")
_quiet.setLevel(logging.WARNING)

SelectSubprotocol = Callable[[ServerProtocol, Sequence[Subprotocol]], Subprotocol | None]
"""Chooses one of those that a client offers; raises NegotiationError where none will do."""


class Receiver(Protocol):
    """What the messages of a connection are for.

    `request_seen` says whether one of them was a request.
    """

    request_seen: bool

    def receive(self, data: bytes) -> None:
        """Take the payload of a text message."""

    def on_ping(self) -> bool:
        """Count a ping or pong; whether it is within the rate, so that a ping is answered."""

    def finish(self) -> None:
        """Run nothing more, and close the connection when what was received is answered."""

    def close(self) -> None:
        """The connection is closed: answer nothing more."""


def new_protocol(
    longest: int, select_subprotocol: SelectSubprotocol | None = None
) -> ServerProtocol:
    """The library's protocol for messages of at most so many bytes, without compression.

    It begins with the frames: `accept` is given the request that h11 has read.
    """
    return ServerProtocol(
        select_subprotocol=select_subprotocol, state=State.OPEN, max_size=longest, logger=_quiet
    )


_KEY = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]==")  # 16 bytes in base64
_CONNECTION = ("upgrade", "keep-alive, upgrade")


def usual_answer(request: Request, subprotocol: str) -> bytes | None:
    """The library's answer to a handshake that offers `subprotocol` or none, as nearly all do.

    None for any other, also for what the library would refuse.
    """
    headers = request.headers
    try:
        key, offered = headers["Sec-WebSocket-Key"], headers.get("Sec-WebSocket-Protocol")
        usual = (
            request.method == "GET"
            and request.protocol == "HTTP/1.1"
            and headers["Upgrade"].lower() == "websocket"
            and headers["Connection"].lower() in _CONNECTION
            and headers["Sec-WebSocket-Version"] == "13"
            and len(headers.get_all("Origin")) < 2
        )
    except LookupError:  # a header is missing, or occurs twice
        return None
    if not usual or offered not in (None, subprotocol) or not _KEY.fullmatch(key):
        return None
    chosen = f"Sec-WebSocket-Protocol: {offered}\r\n" if offered else ""
    return (
        f"HTTP/1.1 101 Switching Protocols\r\nDate: {formatdate(usegmt=True)}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_key(key)}\r\n{chosen}\r\n"
    ).encode()


class FrameRefused(Exception):
    """A frame ends the connection with this close code and reason."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameReader:
    """Reads frames of messages of at most `longest` bytes, and joins the fragments of a message.

    The library's `protocol`, which checks them, is made when it is needed first.

    `between_messages` says that the next byte begins a message, so that what is read may be parsed
    without the library.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.between_messages = True
        self._between_frames = True  # whether the data so far ended with a frame
        self._fragments: list[bytes] = []

    @cached_property
    def protocol(self) -> ServerProtocol:
        return new_protocol(self._longest)

    def slices(self, data: bytes) -> Iterator[Iterator[Frame]]:
        """The frames in these bytes, as the library has checked them, a slice after the other."""
        if self._between_frames:
            self._between_frames = ends_on_frame_boundary(data)
        for start in range(0, len(data), SLICE):
            self.protocol.receive_data(data[start : start + SLICE])
            yield (each for each in self.protocol.events_received() if isinstance(each, Frame))
        self.between_messages = self._between_frames and not self._fragments

    def message(self, frame: Frame) -> bytes | None:
        """The message that this frame completes; None for none. Raises FrameRefused."""
        if frame.opcode is Opcode.TEXT and frame.fin:
            return bytes(frame.data)
        if frame.opcode is Opcode.BINARY:
            reason = "binary frames are not accepted: send text"
            raise FrameRefused(CloseCode.UNSUPPORTED_DATA, reason)
        if frame.opcode is not Opcode.TEXT and frame.opcode is not Opcode.CONT:
            return None
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > MAX_FRAGMENTS:
            raise FrameRefused(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
        if not frame.fin:
            return None
        fragments, self._fragments = self._fragments, []
        return b"".join(fragments)


def parse_single_text_frame(data: bytes, limit: int) -> bytes | None:
    """The payload, at most `limit` bytes, if `data` is one final, masked text frame; else None."""
    size = len(data)
    if size < 6 or data[0] != _FINAL_TEXT:
        return None
    length, mask = data[1] - _MASKED, 2
    if length == 126:
        length, mask = int.from_bytes(data[2:4], "big"), 4
    elif length == 127:
        return None
    start = mask + 4
    if length < 0 or length > limit or size != start + length:
        return None
    return apply_mask(data[start:], data[mask:start])


def ends_on_frame_boundary(data: bytes) -> bool:
    """Whether `data`, which begins with a frame, also ends with one."""
    at, size = 0, len(data)
    while at < size:
        if size - at < 2:
            return False
        length, head = data[at + 1] & _LENGTH, 2
        if length >= 126:
            head = 4 if length == 126 else 10
            length = int.from_bytes(data[at + 2 : at + head], "big")
        if data[at + 1] & _MASKED:
            head += 4
        at += head + length
    return at == size
