"""How often trials repeat what they do: on each change a few times, with `--all` more often."""

from __future__ import annotations

import os
from typing import TypeVar

DEPTH = "DEALER_TEST_DEPTH"
"""Set by `tests/conftest.py`, before it imports a test."""

T = TypeVar("T")


def amount(few: T, *, many: T) -> T:
    """`many` with `--all`, else `few`."""
    return many if os.environ.get(DEPTH) == "all" else few
