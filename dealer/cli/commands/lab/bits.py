"""`dealer lab bits` and `dealer lab dieharder`: the random words for external test suites."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import IO, Annotated

import typer

from dealer.cli.commands.lab.options import Seed, Source, require_packages
from dealer.cli.options import usage_errors
from dealer.cli.output import echo, echo_err
from dealer.cli.streams import ClosedPipe
from dealer.errors import ConfigurationError

_PIECE = 1 << 16


def bits(
    source: Source = "tape",
    seed: Seed = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            min=0,
            help="Number of bytes; without it, until the reader closes the pipe.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the words of a source to standard output as big-endian 16-bit integers.

    ```
    dealer lab bits --bytes 64 | xxd
    dealer lab bits | dieharder -a -g 200
    ```
    """
    pieces = _pieces(source, seed)
    left = count
    with suppress(ClosedPipe):  # here the reader decides how much it gets
        for piece in pieces:
            sys.stdout.buffer.write(piece if left is None else piece[:left])
            if left is not None and (left := left - len(piece)) <= 0:
                break
        sys.stdout.buffer.flush()


def dieharder(context: typer.Context, source: Source = "tape", seed: Seed = None) -> None:
    """Test the words of a source with dieharder, which must be installed.

    Further arguments are passed to it; without any it runs all its tests, which takes hours. The
    exit code is 1 if a test failed.

    ```
    dealer lab dieharder
    dealer lab dieharder -d 0 -t 200
    ```
    """
    pieces = _pieces(source, seed)
    program = shutil.which("dieharder")
    if program is None:
        raise ConfigurationError(
            "dieharder is not installed; install it with: apt install dieharder"
        )
    command = [program, "-g", "200", *(context.args or ["-a"])]
    failed = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        feeder = Thread(target=_feed, args=(running.stdin, pieces), daemon=True)
        feeder.start()
        for line in running.stdout:
            text = line.decode(errors="replace").rstrip()
            failed += "FAILED" in text
            echo(text)
        code = running.wait()
        feeder.join()
    if code:
        raise ConfigurationError(f"dieharder exited with code {code}.")
    if failed:
        echo_err(f"{failed} tests of dieharder failed.")
        raise typer.Exit(1)


def _pieces(source: str, seed: int | None) -> Iterator[bytes]:
    require_packages()
    from dealer.lab.sources import words_from

    with usage_errors():
        more = words_from(source, seed=seed)
    return (more(_PIECE).astype(">u2").tobytes() for _ in iter(int, 1))


def _feed(into: IO[bytes], pieces: Iterator[bytes]) -> None:
    """Write the pieces until the reader closes the pipe."""
    try:
        for piece in pieces:
            into.write(piece)
        into.close()
    except BrokenPipeError:
        pass
