"""What is published of docstrings is there without them, too: `python -OO`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCHEMAS = """
import sys
from dealer.gateway.schema import asyncapi, openrpc
sys.stdout.buffer.write(openrpc("/") + asyncapi("/"))
"""
TOOLS = """
import asyncio, sys
from pathlib import Path
from dealer.mcp.seats import Seats
from dealer.mcp.server import make_server
seats = Seats("ws://localhost:1/ws", Path(sys.argv[1]), name="Ada")
for tool in asyncio.run(make_server(seats, version="1").list_tools()):
    print(tool.name, tool.description)
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
@pytest.mark.parametrize("program", [SCHEMAS, TOOLS], ids=["schemas", "tools"])
def test_descriptions_are_the_same_without_docstrings(program: str, tmp_path: Path) -> None:
    with_docstrings = printed("-c", program, str(tmp_path / "a"), optimize="")
    assert len(with_docstrings) > 500
    assert printed("-c", program, str(tmp_path / "b"), optimize="2") == with_docstrings


@pytest.mark.slow
@pytest.mark.parametrize("command", [(), ("tables",), ("serve",), ("verify",)])
def test_pages_of_help_are_the_same_without_docstrings(command: tuple[str, ...]) -> None:
    helps = [printed("-m", "dealer", *command, "--help", optimize=how) for how in ("", "2")]
    assert helps[1] == helps[0]
