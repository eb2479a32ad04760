"""The random bits themselves, for those who make a trade of testing them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread
from typing import IO, Annotated

import typer

from dealer.cli.lab_ready import Seed, Source, laboratory
from dealer.cli.options import asked_rightly
from dealer.cli.output import remark, say
from dealer.errors import SetupError

_PIECE = 1 << 16


def bits(
    source: Source = "tape",
    seed: Seed = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            min=0,
            help="How many; without it, as long as somebody reads.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the words of a source to standard output, two bytes each, the high one first.

    ```
    dealer lab bits --bytes 64 | xxd
    dealer lab bits | dieharder -a -g 200
    ```
    """
    laboratory()
    with asked_rightly():
        pieces = _pieces(source, seed)
    left = count
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece if left is None else piece[:left])
            if left is not None and (left := left - len(piece)) <= 0:
                break
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Whoever read has enough; what is left in the buffer must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dieharder(context: typer.Context, source: Source = "tape", seed: Seed = None) -> None:
    """Let dieharder, which must be installed, judge the words of a source.

    What follows is given to it; without anything it runs all its tests, which takes hours. The
    exit code is 1 if one of them failed.

    ```
    dealer lab dieharder
    dealer lab dieharder -d 0 -t 200
    ```
    """
    laboratory()
    with asked_rightly():
        pieces = _pieces(source, seed)
    program = shutil.which("dieharder")
    if program is None:
        raise SetupError("dieharder is not installed here: apt install dieharder")
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
            say(text)
        code = running.wait()
        feeder.join()
    if code:
        raise SetupError(f"dieharder ended with code {code}.")
    if failed:
        remark(f"{failed} of its tests failed.")
        raise typer.Exit(1)


def _pieces(source: str, seed: int | None) -> Iterator[bytes]:
    from dealer.lab.sources import words_from

    more = words_from(source, seed=seed)
    return (more(_PIECE).astype(">u2").tobytes() for _ in iter(int, 1))


def _feed(into: IO[bytes], pieces: Iterator[bytes]) -> None:
    """Until the reader has enough."""
    try:
        for piece in pieces:
            into.write(piece)
        into.close()
    except BrokenPipeError:
        pass
