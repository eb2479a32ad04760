"""Runs `dealer` with a small WAL, so that checkpoints are frequent.

    python tests/chaos/small_wal.py 20 serve --database …

The number is the pages of the WAL after which a checkpoint is due.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog.sqlite.store import SqliteStore


def shrink(pages: int) -> None:
    """Patch the store so that its WAL has this many pages."""
    begin = SqliteStore.__init__

    def smaller(self: SqliteStore, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **(options | {"wal_pages": pages}))

    SqliteStore.__init__ = smaller  # type: ignore[method-assign]


if __name__ == "__main__":
    pages, *arguments = sys.argv[1:]
    shrink(int(pages))
    sys.argv = ["dealer", *arguments]
    from dealer.cli import main

    main()
