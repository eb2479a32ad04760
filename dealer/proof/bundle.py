"""Everything that was played, in one file that anybody can check without asking the house.

A bundle is JSON Lines, each line its own canonical form: the header
`{"bundle":"dealer/v1","key":…,"origin":…}`, the leaves in order, so that a leaf's line counted from
0 is its version, and `{"checkpoint":note}` by size, the last one over the whole log. No hidden part
and no salt is in it: the secrets of the rounds give them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dealer.game.events import PROTOCOL
from dealer.proof.canonical import dump


def header(*, origin: str, key: bytes) -> str:
    return dump({"bundle": PROTOCOL, "key": key.hex(), "origin": origin})


def checkpoint(note: str) -> str:
    """The line of a note; its newlines are written `\\n`."""
    return dump({"checkpoint": note})


def write(*, origin: str, key: bytes, leaves: Iterable[str], notes: Iterable[str]) -> Iterator[str]:
    """The lines of a bundle, without newlines; notes are given by size."""
    yield header(origin=origin, key=key)
    yield from leaves
    for note in notes:
        yield checkpoint(note)


def read(data: bytes) -> list[bytes]:
    """The lines of a file; nothing but newline ends one, and the last may lack its own.

    What is no bundle gives lines as well: the verifier says what is wrong with them.
    """
    return data.removesuffix(b"\n").split(b"\n")
