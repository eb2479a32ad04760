"""The verifier rejects a bundle with one changed byte and names the failed check."""

from __future__ import annotations

import random
from pathlib import Path

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.chaos.any_byte import UNCOUNTED, changes, small_game, undetected

POSITIONS = 800


async def test_a_change_of_any_byte_is_detected(tmp_path: Path) -> None:
    game = await small_game(tmp_path)
    honest = verify(read(game.bundle), key=game.key, saved=game.saved)
    assert honest.fault is None
    assert honest.remarks.cosigned > 0
    size = len(game.bundle)
    found = list(changes(random.Random(size).sample(range(size), POSITIONS), game))
    assert undetected(found) == []
    checks = {change.check for change in found} - {UNCOUNTED}
    # No later check is reached, but by a change of an opening, of which the heads do not know.
    assert checks == {"form", "heads", "secrets"}
    for change in found:
        if change.check == "form":
            # A later time is only detected at the next line, whose time then decreases.
            assert change.line - change.where in (0, 1)
