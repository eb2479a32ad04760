"""What is published of docstrings is there without them, too: `python -OO`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEMAS = """
import sys
from dealer.gateway.schema import asyncapi, openrpc
sys.stdout.buffer.write(openrpc("/") + asyncapi("/"))
"""


def printed(*arguments: str, optimize: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={"PYTHONOPTIMIZE": optimize, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.slow
def test_descriptions_are_the_same_without_docstrings() -> None:
    with_docstrings = printed("-c", SCHEMAS, optimize="")
    assert len(with_docstrings) > 500
    assert printed("-c", SCHEMAS, optimize="2") == with_docstrings


@pytest.mark.slow
@pytest.mark.parametrize("command", [(), ("tables",), ("serve",), ("verify",)])
def test_pages_of_help_are_the_same_without_docstrings(command: tuple[str, ...]) -> None:
    helps = [printed("-m", "dealer", *command, "--help", optimize=how) for how in ("", "2")]
    assert helps[1] == helps[0]
