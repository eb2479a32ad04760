"""Writes a history in a process of its own: `python -m dealer.history text|phh [ROUND]`.

Reads a bundle on standard input and writes the history, gzipped, on standard output.
The exit code is 0; 1 where there is no such history and 2 where the bundle does not hold, with a
sentence on standard error. Verifying a bundle takes much memory, which ends with the process.
"""

from __future__ import annotations

import gzip
import sys

from dealer.errors import NoHistory, ProofFault
from dealer.history import phh, text
from dealer.history.story import Game

NO_HISTORY = 1
FAULT = 2


def main(form: str, round: int | None) -> int:
    try:
        game = Game.read([line.removesuffix(b"\n") for line in sys.stdin.buffer])
        if form == "phh" and round is not None:
            made = phh.write(game, round=round)
        else:
            made = "".join(f"{line}\n" for line in text.write(game, round=round))
    except (NoHistory, ProofFault) as error:
        sys.stderr.write(str(error))
        return NO_HISTORY if isinstance(error, NoHistory) else FAULT
    sys.stdout.buffer.write(gzip.compress(made.encode(), compresslevel=1, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
