"""Search the models with more crashes than the tests do, and print a table.

python -m tests.model
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.model.checker import check

SEARCHES = [
    ("table.pml", ()),
    ("table.pml", ("KEEPERS", "COMMANDS=2", "CRASHES=2")),
    ("keys.pml", ()),
    ("keys.pml", ("CRASHES=4",)),
]


def main() -> int:
    """The exit code: 1 if a model does not hold."""
    wrong = 0
    for model, defines in SEARCHES:
        began = perf_counter()
        with TemporaryDirectory() as folder:
            found = check(model, folder=Path(folder), defines=defines)
        took = perf_counter() - began
        wrong += found.fault is not None
        print(f"{' '.join((model, *defines))}: {found.states:,} states, {took:.0f} s, ", end="")
        print(found.fault or "no fault", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
