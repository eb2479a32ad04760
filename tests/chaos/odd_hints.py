"""Runs `dealer` with commit notifications that are lost, or doubled, late and out of order.

    python tests/chaos/odd_hints.py lost 1.0 serve --database …

The number is the poll interval of the heads in seconds. At exit the process writes to standard
error how many notifications were lost or mixed up.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog.postgres.reader import Notifier
from dealer.service.nodes import head_poller

LATE = 0.3
"""Most seconds that a notification is delayed."""


def patch(how: str, seconds: float) -> None:
    """Patch the notifier so that notifications are `lost` or `mixed` up."""
    counted, receive, close = 0, Notifier._on_hint, Notifier.close
    head_poller.POLL_SECONDS = seconds

    def on_hint(self: Notifier, *hint: Any) -> None:
        nonlocal counted
        counted += 1
        if how == "mixed":
            # Each is delivered twice, both out of order.
            loop = asyncio.get_running_loop()
            for _ in range(2):
                loop.call_later(random.uniform(0, LATE), receive, self, *hint)

    async def closed(self: Notifier) -> None:
        sys.stderr.write(f"hints {how}: {counted}\n")
        await close(self)

    Notifier._on_hint = on_hint  # type: ignore[assignment, method-assign]
    Notifier.close = closed  # type: ignore[method-assign]


if __name__ == "__main__":
    how, seconds, *arguments = sys.argv[1:]
    patch(how, float(seconds))
    sys.argv = ["dealer", *arguments]
    from dealer.cli import main

    main()
