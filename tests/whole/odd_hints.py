"""`dealer` with hints between houses that are lost, or that come twice, late and out of order.

    python tests/whole/odd_hints.py lost 1.0 serve --database …

The number is after how many seconds a house looks for itself. At its end the process writes to
standard error how many hints it has lost or mixed up.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog.hints import Hints
from dealer.service import lookout

LATE = 0.3
"""Seconds that a hint may be late."""


def bend(how: str, seconds: float) -> None:
    """From here on hints are `lost` or `mixed` up."""
    counted, heard, close = 0, Hints._on_hint, Hints.close
    lookout.LOOK_SECONDS = seconds

    def on_hint(self: Hints, *hint: Any) -> None:
        nonlocal counted
        counted += 1
        if how == "mixed":
            # Each a second time, and neither in its turn.
            loop = asyncio.get_running_loop()
            for _ in range(2):
                loop.call_later(random.uniform(0, LATE), heard, self, *hint)

    async def closed(self: Hints) -> None:
        sys.stderr.write(f"hints {how}: {counted}\n")
        await close(self)

    Hints._on_hint = on_hint  # type: ignore[method-assign]
    Hints.close = closed  # type: ignore[method-assign]


if __name__ == "__main__":
    how, seconds, *arguments = sys.argv[1:]
    bend(how, float(seconds))
    sys.argv = ["dealer", *arguments]
    from dealer.cli import main

    main()
