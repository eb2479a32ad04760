"""A disk rebuilt from the trace of its writes, and the states it may have after a power cut.

Synced data is safe. Of all other changes (names that were created or removed, and sectors of 512
bytes that were written) any subset may have reached the disk, in any order; a sector is atomic.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import NamedTuple

SECTOR = 512
HEADER = Struct("=IIQQQ")
WRITE, TRUNCATE, SYNC, CREATE, UNLINK, RENAME, LINK = range(1, 8)


class Step(NamedTuple):
    """One record of `powercut.c`; `end` is the offset in the trace after it."""

    kind: int
    inode: int
    offset: int
    length: int
    names: list[str]
    data: memoryview
    end: int


def steps(trace: bytes) -> Iterator[Step]:
    whole, at = memoryview(trace), 0
    while at < len(whole):
        kind, names, inode, offset, length = HEADER.unpack_from(whole, at)
        at += HEADER.size
        named = bytes(whole[at : at + names]).decode()
        at += names
        data = whole[at : at + length] if kind == WRITE else whole[:0]
        at += len(data)
        split = [Path(name).name for name in named.split("\0")] if named else []
        yield Step(kind, inode, offset, length, split, data, at)


@dataclass
class File:
    """`safe` is the synced content, `loose` the writes and truncations since the last sync."""

    safe: bytearray = field(default_factory=bytearray)
    loose: list[Step] = field(default_factory=list)


class Disk:
    """One folder; `folder` is its inode number."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._files: dict[int, File] = {}
        self._names: dict[str, int] = {}
        self._loose: list[Step] = []
        self._now: dict[str, int] = {}

    def take(self, step: Step) -> None:
        """Apply the next record of the trace."""
        if step.kind == SYNC:
            self._sync(step.inode)
        elif step.kind in (WRITE, TRUNCATE):
            self._files.setdefault(step.inode, File()).loose.append(step)
        else:
            if step.kind == CREATE:
                self._files[step.inode] = File()
            named = self._resolved(step)
            _name(self._now, named)
            self._loose.append(named)

    def _resolved(self, step: Step) -> Step:
        """The step with the inode that the name referred to when it was renamed or linked."""
        if step.kind in (RENAME, LINK):
            return step._replace(inode=self._now[step.names[0]])
        return step

    def _sync(self, inode: int) -> None:
        if inode == self._folder:
            for step in self._loose:
                _name(self._names, step)
            self._loose = []
        elif inode in self._files:
            file = self._files[inode]
            for step in file.loose:
                _put(file.safe, step)
            file.loose = []

    def cut(self, into: Path, chance: random.Random) -> None:
        """Write a state that a power cut may leave now into `into`, replacing its files."""
        into.mkdir(exist_ok=True)
        for file in into.iterdir():
            file.unlink()
        kept = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        names = dict(self._names)
        for step in self._loose:
            if chance.random() < kept:
                _name(names, step)
        for name, inode in names.items():
            written = self._files[inode]
            content = bytearray(written.safe)
            for step in written.loose:
                for part in _parts(step):
                    if chance.random() < kept:
                        _put(content, part)
            (into / name).write_bytes(content)
            os.chmod(into / name, 0o600)


def _name(names: dict[str, int], step: Step) -> None:
    first = step.names[0]
    if step.kind in (UNLINK, RENAME):
        names.pop(first, None)
    if step.kind != UNLINK:
        names[step.names[-1]] = step.inode


def _put(content: bytearray, step: Step) -> None:
    if step.kind == TRUNCATE:
        del content[step.length :]
        content.extend(bytes(step.length - len(content)))
        return
    content.extend(bytes(max(0, step.offset - len(content))))
    content[step.offset : step.offset + len(step.data)] = step.data


def _parts(step: Step) -> Iterator[Step]:
    """A write as one step for each sector."""
    if step.kind == TRUNCATE:
        yield step
        return
    at, end = step.offset, step.offset + len(step.data)
    while at < end:
        upto = min(end, (at // SECTOR + 1) * SECTOR)
        yield step._replace(offset=at, data=step.data[at - step.offset : upto - step.offset])
        at = upto
