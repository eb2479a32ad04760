"""Files that commands write, under one rule for every command.

- `-` is standard output.
- A regular file is written as a draft in its folder, and takes its name once it is complete. It
  keeps the mode of the file that it replaces.
- Of a symbolic link the target is replaced, in the target's folder; the link stays.
- What is not a regular file, such as a device, a pipe or a socket, is written into; so is an open
  file of this process, like /dev/stdout and /dev/fd/3.
- A folder is refused.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dealer.cli.streams import ClosedPipe
from dealer.errors import ConfigurationError

STANDARD_OUTPUT = "-"

_DESCRIPTORS = Path("/proc/self/fd")
_LINKS = 40


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """A binary file whose content becomes that of `name` at the end of the block.

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
