"""Fast path for the most frequent input: data that is exactly one whole text message.

websockets parses frames byte by byte through generators, which takes ten times as long as
unmasking. So data that is exactly one final text frame (RFC 6455, section 5.2) is parsed here,
provided that the previous data ended with a frame; everything else is left to the library.
"""

from __future__ import annotations

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled part of websockets
    from websockets.utils import apply_mask

_FINAL_TEXT = 0x81
_MASKED = 0x80
_LENGTH = 0x7F
_CLOSE = 0x88
_CLOSE_HEAD = 6  # with the mask
_LONGEST_CLOSE = _CLOSE_HEAD + 125


def parse_single_text_frame(data: bytes, *, limit: int) -> bytes | None:
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


def ends_with_close(data: bytes) -> bool:
    """Whether the last bytes look like a masked close frame, the last frame that a client sends.

    It serves a connection whose other frames are no longer read, so that their ends are unknown.
    """
    longest = min(_LONGEST_CLOSE, len(data))
    return any(
        data[-size] == _CLOSE and data[1 - size] == _MASKED | (size - _CLOSE_HEAD)
        for size in range(_CLOSE_HEAD, longest + 1)
    )
