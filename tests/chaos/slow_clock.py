"""`dealer` on a machine on which each step takes four times the processor time.

A control group gives a process less of a processor, but its steps take no longer by its own clock.
"""

from __future__ import annotations

import sys
import time

import dealer.cli.commands.serve
import dealer.gateway  # noqa: F401  with all modules that measure their steps
from dealer.cli import main

FACTOR = 4

_measured = time.thread_time


def thread_time() -> float:
    return FACTOR * _measured()


if __name__ == "__main__":
    for module in list(sys.modules.values()):
        if module.__name__.startswith("dealer") and hasattr(module, "thread_time"):
            module.thread_time = thread_time  # type: ignore[attr-defined]
    main(sys.argv[1:])
