"""What commands write: results on standard output, remarks on standard error, and files.

Standard output has the result: if it cannot be written, the command ends with a sentence and exit
code 1. If its reader has closed the pipe, as `head` does, that is no error: the command ends
without a word, with the code 141 that shells show for other programs that SIGPIPE has ended.
Standard error has remarks and the log: what it does not take is lost, and the command goes on.

Files that commands write follow one rule for every command:

- `-` is standard output.
- A regular file is written as a draft in its folder, and takes its name once it is complete. It
  keeps the mode of the file that it replaces.
- A symbolic link stays, and its target is replaced, in the target's folder.
- What is not a regular file, such as a device, a pipe or a socket, is written into; so is an open
  file of this process, like /dev/stdout and /dev/fd/3.
- A folder is refused.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from select import select
from shutil import which
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from dealer.errors import ConfigurationError
from dealer.game.names import safe_text as safe_text
from dealer.history.times import utc
from dealer.proof.canonical import one_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STANDARD_OUTPUT = "-"

_SIGPIPE = 13
_DESCRIPTORS = Path("/proc/self/fd")
_LINKS = 40

Step = Callable[[int, int], None]
"""Called with the work done and the total."""


def program() -> str:
    """The command to run this program: `dealer`, or its path if it is not on the search path."""
    called = sys.argv[0]
    known = Path(called).name != "dealer" or which("dealer") is not None
    return "dealer" if known else shlex.quote(called)


def echo(line: str = "") -> None:
    click.echo(line)


def echo_err(line: str) -> None:
    """Print a remark on standard error, so that scripts do not read it as a result."""
    click.echo(line, err=True)


def say_json(value: Any, *, say: Callable[[str], None] = echo) -> None:
    """Print a value as one line of JSON."""
    say(one_line(json.dumps(value, ensure_ascii=False)))


def format_time(at: int) -> str:
    """Milliseconds since 1970 as a date and a time of day, UTC."""
    return utc(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """A progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        bar = bars.add_task(what, total=None)

        def step(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        yield step


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


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """A binary file whose content becomes `name`'s at the end of the block.

    Raises ConfigurationError, after which a regular file of that name is as it was.
    """
    if name == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        target = _target(name)
        found = target.stat() if target.exists() else None
        if _is_descriptor(target):
            with open(os.dup(int(target.name)), "wb") as file:
                yield file
        elif found is None or stat.S_ISREG(found.st_mode):
            with _replacing(target, found) as file:
                yield file
        elif stat.S_ISSOCK(found.st_mode):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(target))
                with connection.makefile("wb") as file:
                    yield file
        else:
            with target.open("wb") as file:
                yield file
    except BrokenPipeError:
        raise ClosedPipe from None
    except OSError as error:
        says = error.strerror or str(error)
        raise ConfigurationError(f"{name} cannot be written: {says}.") from None


def is_stored(name: str) -> bool:
    """Whether `name` is a regular file, so that what was written there can be read there."""
    return name != STANDARD_OUTPUT and not _is_descriptor(_target(name)) and Path(name).is_file()


@contextmanager
def _replacing(target: Path, found: os.stat_result | None) -> Iterator[BinaryIO]:
    # A draft, because half a bundle would look like a log that was cut.
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
    try:
        with open(handle, "wb") as file:
            yield file
        mode = 0o666 & ~_umask() if found is None else stat.S_IMODE(found.st_mode)
        os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def _target(name: str) -> Path:
    """What the last of a chain of symbolic links names, which need not exist; raises OSError."""
    path = Path(name)
    if not name:
        raise ConfigurationError("The name of the file to write is empty; name one.")
    if name.endswith(os.sep) or path.is_dir():
        raise ConfigurationError(f"{name} is a folder; name a file in it.")
    for _ in range(_LINKS):
        if _is_descriptor(path) or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_descriptor(path: Path) -> bool:
    """Whether this is an open file of this process, whatever its name was or has become."""
    return path.name.isdecimal() and path.parent.resolve() == _DESCRIPTORS.resolve()
