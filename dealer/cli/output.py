"""Output of commands: results on standard output, progress and remarks on standard error."""

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

from dealer.feed.lines import one_line
from dealer.game.names import safe_text as safe_text
from dealer.history.printable import utc

Step = Callable[[int, int], None]
"""Called with the work done and the total."""


def program() -> str:
    """The command to run this program: `dealer`, or its path if it is not on the search path."""
    called = sys.argv[0]
    known = Path(called).name != "dealer" or which("dealer") is not None
    return "dealer" if known else shlex.quote(called)


def echo(line: str = "") -> None:
    typer.echo(line)


def echo_err(line: str) -> None:
    """Print a remark on standard error, so that scripts do not read it as a result."""
    typer.echo(line, err=True)


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
