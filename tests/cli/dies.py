"""Does an operator's work in a process of its own, which is killed at a named point of it.

python -m tests.cli.dies archive URL FOLDER TABLE POINT
python -m tests.cli.dies rotate URL - - POINT
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from dealer.cli.archive import archive_tables
from dealer.cli.rotate import rotate


def main() -> None:
    work, url, folder, table, point = sys.argv[1:]

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    if work == "archive":
        doing = archive_tables(url, Path(folder), table, None, "", "test", reached=reached)
        asyncio.run(doing)
    else:
        asyncio.run(rotate(url, "", "test", reached=reached))


if __name__ == "__main__":
    main()
