"""Standard output and standard error of a command, and what happens if they cannot be written.

Standard output has the result: if it cannot be written, the command ends with a sentence and exit
code 1. If its reader has closed the pipe, as `head` does, that is no error: the command ends
without a word, with the code 141 that shells show for other programs that SIGPIPE has ended.
Standard error has remarks and the log: what it does not take is lost, and the command goes on.
"""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from select import select
from typing import TYPE_CHECKING, TextIO

from dealer.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_SIGPIPE = 13


class ClosedPipe(SystemExit):
    """The reader of the output has closed the pipe; ends the program unless it is caught."""

    def __init__(self) -> None:
        super().__init__(128 + _SIGPIPE)


def guard() -> None:
    """Make `sys.stdout` and `sys.stderr` follow these rules, also for what is written at exit.

    A terminal that cannot display a character of a player's name gets an escape instead.
    """
    if os.name != "posix":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # A closed one: else the next file, maybe the database, would get its number.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = _guarded(sys.stdout, 1, remarks=False)
    sys.stderr = _guarded(sys.stderr, 2, remarks=True)


def _guarded(stream: TextIO | None, descriptor: int, *, remarks: bool) -> TextIO:
    encoding, lines, through = None, False, False
    if stream is not None:
        try:
            descriptor = stream.fileno()
        except (AttributeError, OSError):
            return stream  # not of the system
        encoding = stream.encoding
        lines = bool(stream.line_buffering)
        through = isinstance(stream, TextIOWrapper) and stream.write_through
        stream.flush()
    return TextIOWrapper(
        BufferedWriter(_Output(descriptor, remarks=remarks)),
        encoding=encoding or "utf-8",
        errors="backslashreplace",
        line_buffering=lines,
        write_through=through,
    )


class _Output(FileIO):
    def __init__(self, descriptor: int, *, remarks: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._remarks = remarks
        self._failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        whole = memoryview(data).nbytes
        if self._failed:
            return whole
        try:
            while (written := super().write(data)) is None:
                select((), (self,), ())  # another program has made it non-blocking
        except OSError as error:
            if self._remarks:
                return whole
            self._failed = True  # what is left in buffers fails no second time
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise ClosedPipe from None
            raise ConfigurationError(
                f"Standard output cannot be written: {error.strerror}."
            ) from None
        return written
