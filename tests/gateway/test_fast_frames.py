"""Fast parsing of frames: equal to that of websockets, or not applied."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side

from dealer.gateway.net.websocket import (
    ends_on_frame_boundary,
    parse_single_text_frame,
)

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


def read_by_websockets(data: bytes) -> list[Frame]:
    protocol = Protocol(Side.SERVER, state=OPEN, max_size=LIMIT)
    protocol.receive_data(data)
    return cast("list[Frame]", protocol.events_received())


@given(FRAMES)
def test_a_text_frame_is_read_as_websockets_reads_it(frame: Frame) -> None:
    data = frame.serialize(mask=True)
    text = parse_single_text_frame(data, limit=LIMIT)
    if text is None:
        assert frame.opcode is not Opcode.TEXT or not frame.fin
    else:
        (read,) = read_by_websockets(data)
        assert (read.opcode, read.fin, bytes(read.data)) == (Opcode.TEXT, True, text)


@given(st.binary(max_size=40))
def test_other_bytes_are_read_only_if_websockets_reads_one_text(data: bytes) -> None:
    text = parse_single_text_frame(data, limit=LIMIT)
    if text is not None:
        (read,) = read_by_websockets(data)
        assert bytes(read.data) == text


@given(st.lists(FRAMES, max_size=5), st.integers(0, 2000))
def test_the_end_of_a_frame_is_recognised(frames: list[Frame], cut: int) -> None:
    """Of all prefixes of a stream exactly those that end with a frame are recognised."""
    parts = [frame.serialize(mask=True) for frame in frames]
    data = b"".join(parts)
    ends = {sum(map(len, parts[:count])) for count in range(len(parts) + 1)}
    cut = min(cut, len(data))
    assert ends_on_frame_boundary(data)
    assert ends_on_frame_boundary(data[:cut]) == (cut in ends)


def test_long_unmasked_and_several_frames_are_left_to_websockets() -> None:
    frame = Frame(Opcode.TEXT, b"x" * LIMIT).serialize(mask=True)
    assert parse_single_text_frame(frame, limit=LIMIT) == b"x" * LIMIT
    assert parse_single_text_frame(frame, limit=LIMIT - 1) is None
    unmasked = Frame(Opcode.TEXT, b"x" * 10).serialize(mask=False)
    assert parse_single_text_frame(unmasked, limit=LIMIT) is None
    assert parse_single_text_frame(frame + frame, limit=LIMIT) is None
