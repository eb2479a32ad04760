"""One byte of a bundle is changed, and the verifier says what is wrong with it."""

from __future__ import annotations

import random
from pathlib import Path

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.whole.any_byte import changes, small_game, unnoticed

POSITIONS = 800


async def test_any_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    game = await small_game(tmp_path)
    honest = verify(read(game.bundle), key=game.key, saved=game.saved)
    assert honest.fault is None
    assert honest.remarks.cosigned > 0
    size = len(game.bundle)
    found = list(changes(random.Random(size).sample(range(size), POSITIONS), game))
    assert unnoticed(found) == []
    checks = {change.check for change in found}
    assert checks == {"form", "heads"}  # nothing gets as far as the later checks
    for change in found:
        if change.check == "form":
            # A later time is only noticed by the line after it, for which time ran backwards.
            assert change.line - change.where in (0, 1)
