"""Bundle: the complete log of a table in one file, which can be verified offline.

A bundle is JSON Lines in canonical form: the header `{"bundle":"dealer/v1","key":…,"origin":…}`,
the leaves in order, so that the line number of a leaf, counted from 0, is its version, the openings
of what people wrote (`opened`), `{"opened":…,"salt":…,"version":…}` in ascending order of version,
and `{"checkpoint":note}` in ascending order of size, the last one over the whole log. Hidden parts
and their salts are not in it: they are recomputed from the revealed secrets of the rounds.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dealer.game.events import PROTOCOL
from dealer.proof.canonical import dump

GZIP = b"\x1f\x8b"
MARK = b"\xef\xbb\xbf"

LONGEST = 2**30
LONGEST_RATIO = 20
"""Most bytes of a decompressed file: in all, and for each byte of the compressed one.

A bundle is mostly digests and becomes about 4 times shorter.
"""

SHORTEST_LINE = 17
"""Bytes of the shortest line that a bundle may have, `{"checkpoint":""}`."""

LEAF = b'{"at":'
OPENED = b'{"opened":'
CHECKPOINT = b'{"checkpoint":'
"""How the lines after the header begin."""

DECOMPRESSED = "the file was compressed with gzip; it was decompressed"
UNMARKED = "a byte order mark was put before the first line; it was removed"
LINE_ENDS = "line ends were changed to CRLF; they were changed back"
EMPTY_LINES = "empty lines were added at the end; they were removed"
LAST_NEWLINE = "the newline at the end was missing; it was added"


def header(*, origin: str, key: bytes) -> str:
    """The first line; `key` is the house's public key, 32 bytes."""
    return dump({"bundle": PROTOCOL, "key": key.hex(), "origin": origin})


def opened(version: int, part: Mapping[str, Any], salt: bytes) -> str:
    """The line that opens what was written in the event of this version; `salt` has 32 bytes."""
    return dump({"opened": part, "salt": salt.hex(), "version": version})


def checkpoint(note: str) -> str:
    """The line of a note, with its newlines as `\\n`."""
    return dump({"checkpoint": note})


def read(data: bytes) -> list[bytes]:
    """The lines of a file, separated by newline only; the last newline is optional.

    The content is not validated: any bytes have lines, and the verifier reports their faults. What
    follows a line of less than `SHORTEST_LINE` bytes is left as one: that line is a fault, and
    millions of short lines would take a hundred times the memory of the file.
    """
    data, lines, start, length = data.removesuffix(b"\n"), [], 0, SHORTEST_LINE
    while length >= SHORTEST_LINE and (end := data.find(b"\n", start)) >= 0:
        lines.append(data[start:end])
        start, length = end + 1, end - start
    lines.append(data[start:])
    return lines


def read_leaves(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """The leaves of a verified bundle in order, each with its opened part among `public`."""
    openings = (json.loads(line) for line in lines if line.startswith(OPENED))
    parts = {opening["version"]: opening["opened"] for opening in openings}
    for line in lines:
        if line.startswith(LEAF):
            leaf = json.loads(line)
            leaf["public"] |= parts.get(leaf["version"], {})
            yield leaf


class Restored(NamedTuple):
    """The bytes of a file as the server sent them; `notes` say what was undone, in this order."""

    data: bytes
    notes: list[str]

    def lines(self) -> list[bytes]:
        """The lines of the file, see `read`."""
        return read(self.data)


def restore(data: bytes) -> Restored:
    """Undo what other tools change when they save a file, if nothing of it is lost by that.

    It is one layer of gzip, a byte order mark before the first line, CRLF at the end of every line,
    and other than one newline at the end. All else is left to the verifier, above all a CR or a
    mark elsewhere: canonical lines have none, so someone put it there.
    """
    # What is verified is bytes: two files that people may read in different ways must not have one
    # verdict. So other line ends and rewritten JSON stay faults, though they could be undone.
    notes = []
    if data.startswith(GZIP) and (whole := _decompress(data)) is not None:
        data = whole
        notes.append(DECOMPRESSED)
    if data.startswith(MARK):
        data = data.removeprefix(MARK)
        notes.append(UNMARKED)
    if 0 < data.count(b"\r\n") == data.count(b"\r") == data.count(b"\n"):
        data = data.replace(b"\r\n", b"\n")
        notes.append(LINE_ENDS)
    content = data.rstrip(b"\n")
    if content and data.endswith(b"\n\n"):
        notes.append(EMPTY_LINES)
    elif content == data and data:
        notes.append(LAST_NEWLINE)
    return Restored(content + b"\n" if content else data, notes)


def _decompress(data: bytes) -> bytes | None:
    """The content of a gzip file; None if it is cut, damaged, too long, or followed by more."""
    most = min(LONGEST, LONGEST_RATIO * len(data))
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        whole = unpacking.decompress(data, most + 1)
    except zlib.error:
        return None
    complete = unpacking.eof and not unpacking.unused_data
    return whole if complete and len(whole) <= most else None
