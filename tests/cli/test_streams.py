"""Commands whose output cannot be written, or whose reader has closed the pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dealer.config.settings import DATABASE_VARIABLE

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

CLOSED_PIPE = 141
COMMANDS = (
    "tables", "tables --json", "audit TABLE", "audit TABLE --events",
    "audit TABLE --events --json", "history TABLE",
    "export TABLE", "export TABLE -o -", "export TABLE -o /dev/stdout", "state TABLE", "journal",
    "verify --manifest", "--help", "--version", "lab costs", "config --json",
)  # fmt: skip
"""TABLE is a table of the database."""

REST = """
import sys
from dealer.cli import main as run
main = sys.modules["dealer.cli.main"]
main.echo = lambda line: sys.stdout.write(line)
run(["--version"])
"""
"""A command whose output is still in the buffer when it ends."""


@contextmanager
def closed_pipe() -> Iterator[int]:
    """A pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def given(command: str, played: Played) -> tuple[str, ...]:
    words = [played.closed if word == "TABLE" else word for word in command.split()]
    return (sys.executable, "-m", "dealer", *words)


def run(
    command: tuple[str, ...], played: Played, *, out: int | None = None, err: int = subprocess.PIPE
) -> tuple[int, str]:
    """Exit code and standard error of a command on this database."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("DEALER_")}
    environ[DATABASE_VARIABLE] = played.url
    environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = subprocess.run(command, stdout=out, stderr=err, env=environ, timeout=100)
    return done.returncode, (done.stderr or b"").decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_is_gone_is_no_error(played: Played, command: str) -> None:
    with closed_pipe() as pipe:
        assert run(given(command, played), played, out=pipe) == (CLOSED_PIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_said_in_a_sentence(played: Played, command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, says = run(given(command, played), played, out=full.fileno())
    assert code == 1
    assert says.startswith("dealer: ")
    assert says.endswith(" cannot be written: No space left on device.\n")
    assert says.count("\n") == 1


def test_so_is_output_that_is_closed(played: Played) -> None:
    command = ("sh", "-c", 'exec "$@" >&-', "sh", *given("tables", played))
    code, says = run(command, played)
    assert (code, says) == (
        1,
        "dealer: Standard output cannot be written: Bad file descriptor.\n",
    )


def test_what_is_in_the_buffer_at_the_end_counts_too(played: Played) -> None:
    program = (sys.executable, "-c", REST)
    with closed_pipe() as pipe:
        assert run(program, played, out=pipe) == (CLOSED_PIPE, "")
    with Path("/dev/full").open("wb") as full:
        code, says = run(program, played, out=full.fileno())
    assert (code, says.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("command", "code"), [("audit TABLE", 0), ("audit 0123", 1), ("tables --limit x", 2)]
)
def test_remarks_without_a_reader_change_nothing(played: Played, command: str, code: int) -> None:
    words = given(command, played)
    with closed_pipe() as pipe, Path("/dev/full").open("wb") as full:
        null = subprocess.DEVNULL
        assert run(words, played, out=null, err=pipe)[0] == code
        assert run(words, played, out=null, err=full.fileno())[0] == code
    closed = ("sh", "-c", 'exec "$@" 2>&-', "sh", *words)
    assert run(closed, played, out=subprocess.DEVNULL)[0] == code


def test_a_pipe_that_does_not_block_gets_everything(ask: Ask, played: Played) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = given("export TABLE", played)
    with subprocess.Popen(
        (*command, "--database", played.url), stdout=writer, cwd=Path(__file__).parents[2]
    ) as running:
        os.close(writer)
        with open(reader, "rb") as pipe:
            got = pipe.read()
    assert running.returncode == 0
    assert got.decode() == ask("export", played.closed, "--database", played.url).out
