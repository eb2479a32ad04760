"""Changes every byte of a game's bundle, one at a time: the verifier must reject each change.

    python tests/chaos/any_byte.py            # all positions of a small game's bundle
    python tests/chaos/any_byte.py game.jsonl # of another bundle

Each byte is changed twice: to any other byte, and to one of the same class (a digit to a digit, a
letter to a letter), which only the deeper checks can detect. One change is no fault: a cosignature
whose name or key id is changed belongs to an unknown key, which a note may carry (C2SP
signed-note), and is no longer counted.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.proof.bundle import read
from dealer.proof.verify import CHECKS, verify
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import connect_clients

SMALL_DECK = ("2c", "3c", "4d", "5d", "6h", "7h", "8s", "9s")


UNCOUNTED = "uncounted"


class Game(NamedTuple):
    """A bundle, the table's key, and the checkpoints that the players saved."""

    bundle: bytes
    key: bytes | None
    saved: tuple[str, ...] = ()


class Change(NamedTuple):
    """One byte changed in line `where`; the failed check, its line and its message.

    `check` is UNCOUNTED if only a cosignature is no longer counted, and "" if the verifier accepted
    the change.
    """

    position: int
    where: int
    check: str
    line: int
    sentence: str


async def small_game(folder: Path) -> Game:
    """Two players with a few cards: a small bundle with every kind of line."""
    async with (
        ServerProcess(folder) as server,
        connect_clients(server.url, names=("Ada", "Bob")) as clients,
    ):
        await clients.sit_down(seats=2, deck=list(SMALL_DECK))
        ada, bob = clients.tables
        await ada.round_open()
        await ada.shuffle()
        await ada.deal(1)
        await clients.all_see(lambda table: table.deck_count == len(SMALL_DECK) - 2)
        await bob.discard(bob.hand)
        await bob.show(await bob.draw(1))
        await ada.cut(2)
        await ada.round_close()
        await ada.close()
        await clients.all_see(lambda table: table.closed)
        saved = tuple(note for table in clients.tables for note in table.checkpoints)
        return Game(await server.bundle(clients.id), ada.key, saved)


def changes(positions: Iterable[int], game: Game) -> Iterator[Change]:
    """Change each of these bytes in two ways that its position determines, and verify."""
    honest = verify(read(game.bundle), key=game.key).remarks.cosigned
    for position in positions:
        byte, chance = game.bundle[position], random.Random(position)
        for kind in (range(256), same_class(byte)):
            other = chance.choice([one for one in kind if one != byte])
            forged = game.bundle[:position] + bytes([other]) + game.bundle[position + 1 :]
            where = game.bundle.count(b"\n", 0, position)
            report = verify(read(forged), key=game.key, saved=game.saved)
            fault = report.fault
            if fault is None:
                check = UNCOUNTED if report.remarks.cosigned == honest - 1 else ""
                yield Change(position, where, check, 0, "")
            else:
                yield Change(position, where, fault.check, fault.line, fault.sentence)


def same_class(byte: int) -> bytes:
    """The bytes of the same class, which a shallow check would accept."""
    kinds = (b"0123456789", b"abcdef", ascii_lowercase.encode(), ascii_uppercase.encode())
    return next((kind for kind in kinds if byte in kind), bytes(range(32, 127)))


def undetected(found: Iterable[Change]) -> list[Change]:
    """The changes that the verifier accepted or rejected without a check's name and a message."""
    return [
        change
        for change in found
        if not (change.check == UNCOUNTED or (change.check in CHECKS and change.sentence))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path, nargs="?")
    parser.add_argument("--key", help="the table's key, 64 hex digits")
    options = parser.parse_args()
    if options.bundle is None:
        with tempfile.TemporaryDirectory(prefix="dealer-bytes-") as folder:
            game = asyncio.run(small_game(Path(folder)))
    else:
        game = Game(
            options.bundle.read_bytes(), bytes.fromhex(options.key) if options.key else None
        )
    report = verify(read(game.bundle), key=game.key, saved=game.saved)
    if not report.ok:
        print(f"This bundle does not verify as it is: {report.fault}")
        return 1
    size, workers = len(game.bundle), os.cpu_count() or 1
    parts = [range(start, size, 16 * workers) for start in range(16 * workers)]
    found: list[Change] = []
    with multiprocessing.Pool(workers) as pool:
        for part in pool.imap_unordered(partial(_list_of, game), parts):
            found += part
    missed = undetected(found)
    print(f"{size} bytes, {len(found)} changes, {len(missed)} of them undetected; refused as")
    for check, count in Counter(change.check for change in found if change.check).most_common():
        print(f"  {check:10}{count:>10}")
    for change in missed[:20]:
        print(f"UNNOTICED: byte {change.position} in line {change.where}")
    return 1 if missed else 0


def _list_of(game: Game, positions: range) -> list[Change]:
    return list(changes(positions, game))


if __name__ == "__main__":
    sys.exit(main())
