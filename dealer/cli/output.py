"""What a terminal gets to see: plain lines on standard output, progress and remarks beside it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import typer

from dealer.history.printable import harmless as harmless
from dealer.history.printable import when

Step = Callable[[int, int], None]
"""How much is done, of how much in all."""


def program() -> str:
    """What to type to call this program again: `dealer`, or its path where no shell finds it."""
    called = sys.argv[0]
    known = Path(called).name != "dealer" or which("dealer") is not None
    return "dealer" if known else shlex.quote(called)


def say(line: str = "") -> None:
    typer.echo(line)


def remark(line: str) -> None:
    """Something that a script which reads the output must not meet there."""
    typer.echo(line, err=True)


def say_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def moment(at: int) -> str:
    """Milliseconds since 1970 as a date and a time of day, UTC."""
    return when(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """A bar on standard error for as long as this lasts, if somebody sits in front of it."""
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
