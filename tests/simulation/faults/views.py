"""Faults of what a viewer may know: bytes that depend on the cards of others."""

from __future__ import annotations

from typing import Any

from dealer.game import view
from dealer.gateway.push import broadcaster
from tests.simulation.faults import Replacement, fault


@fault
def length_shows_a_card() -> list[Replacement]:
    """A live frame has a space more for all viewers where a player draws a spade."""

    def make(frame: Any) -> Any:
        def longer(entries: Any, viewer: Any) -> bytes:
            spade = any('s","salt"' in entry.private for entry in entries)
            data = bytearray(frame(entries, viewer))
            if spade and data[1] < 125:
                data[1] += 1
                data += b" "
            elif spade and data[1] == 126:
                data[2:4] = (int.from_bytes(data[2:4]) + 1).to_bytes(2)
                data += b" "
            return bytes(data)

        return longer

    return [Replacement(broadcaster, "event_frame", make)]


@fault
def state_shows_all_hands() -> list[Replacement]:
    """The state of a table shows a viewer the cards that any seat may see."""

    def make(_: Any) -> Any:
        def faces(round_: Any, viewer: Any) -> dict[int, str]:
            seen = set(round_.shown).union(*round_.known.values())
            return {slot: face for slot in sorted(seen) if (face := round_.faces[slot]) is not None}

        return faces

    return [Replacement(view, "faces", make)]
