"""`python -m dealer.history LANGUAGE [ROUND]`: writes a history in a separate process.

It reads from standard input a line of JSON, the titles of piles by game in that language, and a
bundle, and writes the gzipped history to standard output. The exit
code is 0, 1 if there is no such history or 2 if the bundle does not verify, with a sentence on
standard error. The separate process returns the memory of the verification to the system.
"""

from __future__ import annotations

import gzip
import json
import sys

from dealer.errors import HistoryUnavailable, ProofFault
from dealer.history import text
from dealer.history.replay import Game
from dealer.languages.language import languages

NO_HISTORY = 1
FAULT = 2


def main(language: str, round: int | None) -> int:
    games = json.loads(sys.stdin.buffer.readline())
    try:
        game = Game.read([line.removesuffix(b"\n") for line in sys.stdin.buffer])
        lines = text.write(game, round=round, language=languages()[language], games=games)
        made = "".join(f"{line}\n" for line in lines)
    except (HistoryUnavailable, ProofFault) as error:
        sys.stderr.write(str(error))
        return NO_HISTORY if isinstance(error, HistoryUnavailable) else FAULT
    sys.stdout.buffer.write(gzip.compress(made.encode(), compresslevel=1, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
