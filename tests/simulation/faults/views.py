"""Faults of what a viewer may know: bytes that depend on the cards of others."""

from __future__ import annotations

from typing import Any

from dealer.game import view
from dealer.gateway.wire import protocol
from tests.simulation.faults import fault_of


@fault_of(protocol, "event_frame")
def length_shows_a_card(frame: Any, entries: Any, viewer: Any) -> bytes:
    """A live frame has a space more for all viewers where a player draws a spade."""
    spade = any('s","salt"' in entry.private for entry in entries)
    data = bytearray(frame(entries, viewer))
    if spade and data[1] < 125:
        data[1] += 1
        data += b" "
    elif spade and data[1] == 126:
        data[2:4] = (int.from_bytes(data[2:4]) + 1).to_bytes(2)
        data += b" "
    return bytes(data)


@fault_of(view, "faces")
def state_shows_all_hands(_: Any, round_: Any, viewer: Any) -> dict[int, str]:
    """The state of a table shows a viewer the cards that any seat may see."""
    seen = set(round_.shown).union(*round_.known.values())
    return {slot: face for slot in sorted(seen) if (face := round_.faces[slot]) is not None}
