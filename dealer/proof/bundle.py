"""Bundle: the complete log of a table in one file, which can be verified offline.

A bundle is JSON Lines in canonical form: the header `{"bundle":"dealer/v1","key":…,"origin":…}`,
the leaves in order, so that the line number of a leaf, counted from 0, is its version, and
`{"checkpoint":note}` in ascending order of size, the last one over the whole log. It contains no
hidden parts and no salts: they are recomputed from the revealed secrets of the rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dealer.game.events import PROTOCOL
from dealer.proof.canonical import dump


def header(*, origin: str, key: bytes) -> str:
    """The first line; `key` is the house's public key, 32 bytes."""
    return dump({"bundle": PROTOCOL, "key": key.hex(), "origin": origin})


def checkpoint(note: str) -> str:
    """The line of a note, with its newlines as `\\n`."""
    return dump({"checkpoint": note})


def write(*, origin: str, key: bytes, leaves: Iterable[str], notes: Iterable[str]) -> Iterator[str]:
    """The lines of a bundle, without newlines; notes are given by size."""
    yield header(origin=origin, key=key)
    yield from leaves
    for note in notes:
        yield checkpoint(note)


def read(data: bytes) -> list[bytes]:
    """The lines of a file, separated by newline only; the last newline is optional.

    The content is not validated: any bytes have lines, and the verifier reports their faults.
    """
    return data.removesuffix(b"\n").split(b"\n")
