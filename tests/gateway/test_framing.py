"""The short way reads what websockets reads, and leaves it everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side

from dealer.gateway.framing import ends_between, ends_with_close, whole_text

LIMIT = 300

PAYLOADS = st.integers(0, LIMIT).map(lambda size: b"x" * size) | st.binary(max_size=140)
FRAMES = st.builds(
    lambda opcode, payload, fin: Frame(opcode, payload, fin=fin),
    st.sampled_from([Opcode.TEXT, Opcode.TEXT, Opcode.BINARY, Opcode.CONT]),
    PAYLOADS,
    st.sampled_from([True, True, False]),
) | st.builds(
    lambda opcode, payload: Frame(opcode, payload),
    st.sampled_from([Opcode.PING, Opcode.PONG]),
    st.binary(max_size=125),
)


def by_the_library(data: bytes) -> list[Frame]:
    protocol = Protocol(Side.SERVER, state=OPEN, max_size=LIMIT)
    protocol.receive_data(data)
    return protocol.events_received()


@given(FRAMES)
def test_one_frame_is_read_as_the_library_reads_it(frame: Frame) -> None:
    data = frame.serialize(mask=True)
    text = whole_text(data, limit=LIMIT)
    if text is None:
        assert frame.opcode is not Opcode.TEXT or not frame.fin
    else:
        (read,) = by_the_library(data)
        assert (read.opcode, read.fin, bytes(read.data)) == (Opcode.TEXT, True, text)


@given(st.binary(max_size=40))
def test_what_the_library_does_not_take_for_one_text_is_not_read(data: bytes) -> None:
    text = whole_text(data, limit=LIMIT)
    if text is not None:
        (read,) = by_the_library(data)
        assert bytes(read.data) == text


@given(st.lists(FRAMES, max_size=5), st.integers(0, 2000))
def test_the_end_of_a_frame_is_known(frames: list[Frame], cut: int) -> None:
    """Pieces of a stream: each that ends with a frame, and no other, is said to."""
    parts = [frame.serialize(mask=True) for frame in frames]
    data = b"".join(parts)
    ends = {sum(map(len, parts[:count])) for count in range(len(parts) + 1)}
    cut = min(cut, len(data))
    assert ends_between(data)
    assert ends_between(data[:cut]) == (cut in ends)


def test_more_than_the_limit_is_left_to_the_library() -> None:
    frame = Frame(Opcode.TEXT, b"x" * LIMIT).serialize(mask=True)
    assert whole_text(frame, limit=LIMIT) == b"x" * LIMIT
    assert whole_text(frame, limit=LIMIT - 1) is None
    unmasked = Frame(Opcode.TEXT, b"x" * 10).serialize(mask=False)
    assert whole_text(unmasked, limit=LIMIT) is None
    assert whole_text(frame + frame, limit=LIMIT) is None


def test_a_close_frame_at_the_end_is_seen_behind_anything() -> None:
    for payload in (b"", b"\x03\xe8", b"\x03\xe8" + b"x" * 123):
        close = Frame(Opcode.CLOSE, payload).serialize(mask=True)
        assert ends_with_close(close)
        assert ends_with_close(b"\x88\x80" * 7 + close)
        assert not ends_with_close(close + b"\x00" * 200)
    assert not ends_with_close(b"")
    assert not ends_with_close(Frame(Opcode.PING, b"x" * 100).serialize(mask=True))
