"""Who put random bytes into each shuffle, as the audit page says it."""

from __future__ import annotations

import json
from typing import Any

from tests.harness.programs import output_of
from tests.web.js_verifier import FILE, LOCAL_FETCH, node

PROGRAM = """
const { contributionsOf } = await import(MODULE);
const leaves = EVENTS.map(([type, event]) => ({ type, public: event }));
const round = { leaves, seats: new Map([[1, "Ada"], [2, "Bo"]]), bots: new Set([2]) };
console.log(JSON.stringify(contributionsOf(round)));
"""


def contributions(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    given = {"MODULE": (FILE.parent / "audit" / "explanation.js").as_uri(), "EVENTS": events}
    names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
    command = [node(), "--import", LOCAL_FETCH, "--input-type=module", "-e", names + PROGRAM]
    found: list[dict[str, Any]] = json.loads(output_of(*command))
    return found


def test_bots_silent_players_and_voided_shuffles_are_named() -> None:
    first, second = contributions(
        ("ShuffleStarted", {"k": 0}),
        ("EntropyClosed", {"k": 0}),
        ("SeatTaken", {"seat": 3, "name": "Late"}),
        ("EntropyRevealed", {"k": 0, "seat": 2}),
        ("DeckSealed", {"k": 0}),
        ("SeatVacated", {"seat": 2}),
        ("SeatTaken", {"seat": 2, "name": "Cy\u202e", "bot": True}),
        ("SeatLeft", {"seat": 1}),
        ("ShuffleStarted", {"k": 1}),
        ("EntropyClosed", {"k": 1}),
        ("EntropyRevealed", {"k": 1, "seat": 3}),
        ("ShuffleVoided", {"k": 1}),
    )
    assert first == {
        "number": 1, "names": ["Bo (bot)"], "without": ["Ada"], "voided": False, "sealed": True,
    }  # fmt: skip
    assert second == {
        "number": 2, "names": ["Late"], "without": ["Cy\ufffd (bot)"], "voided": True,
        "sealed": False,
    }  # fmt: skip
