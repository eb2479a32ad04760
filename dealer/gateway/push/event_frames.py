"""WebSocket frames of a table's events and checkpoints, as one viewer may see them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from dealer.game.events import CHECKPOINT_TYPES, SeatGivenUp
from dealer.game.view import Viewer, may_see
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import EventRecord

_SEAT_GIVEN_UP = frozenset(kind.__name__ for kind in get_args(SeatGivenUp))


def event_frame(entries: Sequence[EventRecord], viewer: Viewer) -> bytes:
    """The frame with the events of one append, in their order, as `viewer` may see them.

    An event is its leaf unchanged, plus the private face that it shows to the viewer's seat.
    """
    if len(entries) == 1:
        (entry,) = entries
        shown = entry.leaf
        if viewer and entry.seat and may_see(viewer, entry.seat, entry.version):
            shown = f'{shown[:-1]},"private":{entry.private}}}'
        payload = f'{{"jsonrpc":"2.0","method":"event","params":{shown}}}'.encode()
    else:
        listed = ",".join(
            [
                entry.leaf
                if entry.seat is None or not may_see(viewer, entry.seat, entry.version)
                else f'{entry.leaf[:-1]},"private":{entry.private}}}'
                for entry in entries
            ]
        )
        payload = f'{{"jsonrpc":"2.0","method":"events","params":{{"list":[{listed}]}}}}'.encode()
    size = len(payload)
    return (wire.HEADS[size] if size < len(wire.HEADS) else wire.frame_head(size)) + payload


def checkpoint_frame(table: str, size: int, note: str) -> bytes:
    notice = r.Checkpoint(table=table, size=size, note=note)
    return wire.text_frame(wire.notification("checkpoint", notice))


def backlog_frames(
    table: str, entries: Sequence[EventRecord], notes: Mapping[int, str], viewer: Viewer
) -> bytes:
    """Frames of events, each checkpoint after the events that it covers; `notes` are by size."""
    frames, run = [], []
    for entry in entries:
        run.append(entry)
        note = notes.get(entry.version)
        if note is not None or entry is entries[-1]:
            frames.append(event_frame(run, viewer))
            run = []
        if note is not None:
            frames.append(checkpoint_frame(table, entry.version, note))
    return b"".join(frames)


def may_have_checkpoints(entries: Iterable[EventRecord]) -> bool:
    """Whether the server signs a checkpoint after one of these events."""
    return any(entry.type in CHECKPOINT_TYPES for entry in entries)


def seats_left(entries: Iterable[EventRecord]) -> dict[int, int]:
    """The seats that were given up in these events, each with the first version of that."""
    left: dict[int, int] = {}
    for entry in entries:
        if entry.type in _SEAT_GIVEN_UP:
            left.setdefault(json.loads(entry.leaf)["public"]["seat"], entry.version)
    return left
