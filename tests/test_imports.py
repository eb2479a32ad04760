"""Imports go one way, and guests stay in the rooms that invited them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

DEALER = Path(__file__).parents[1] / "dealer"

# A room may import itself and what stands before it.
LINE = [
    "errors", "game", "proof", "eventlog", "projector", "service", "gateway", "config", "cli",
]  # fmt: skip
ASIDE = {room: {"errors", "game", "proof"} for room in ("client", "lab", "history")}
ALLOWED = {room: set(LINE[:place]) for place, room in enumerate(LINE)} | ASIDE

# Above the line: who starts the whole and may know the client, the lab and the pages too.
ALLOWED["cli"] |= {"client", "lab", "web", "history", "__init__"}
ALLOWED["gateway"] |= {"history"}
ALLOWED["__init__"] = {"client"}  # when it is asked for: see the test of a player who verifies

GUESTS = {
    "sqlalchemy": {"eventlog", "projector"},
    "alembic": {"eventlog"},
    "asyncpg": {"eventlog"},
    "websockets": {"gateway", "client"},
    "msgspec": {"gateway", "eventlog"},
    "secrets": {"service", "client"},
    "random": {"lab"},
    "numpy": {"lab"},
}
PURE = {"errors", "game", "proof", "history"}
PURE_GUESTS = {"cryptography"}
NEVER_PURE = {"asyncio", "time", "datetime", "secrets", "random", "socket", "threading", "os"}
DATES = {"history"}  # may write a moment that it is given as a date, and has no clock all the same

FILES = sorted(path for path in DEALER.rglob("*.py") if "__pycache__" not in path.parts)


def module_of(path: Path) -> tuple[str, ...]:
    """`dealer/game/tape.py` is ("dealer", "game", "tape"); a package ends with its own name."""
    parts = path.relative_to(DEALER.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(source: str, module: tuple[str, ...], *, package: bool) -> set[tuple[str, ...]]:
    """Every module that a source imports, at its top or inside a function, as dotted parts."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = len(module) - node.level + package
            base = module[:up] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            found |= {(*base, alias.name) for alias in node.names}
    return found


def faults(source: str, module: tuple[str, ...], *, package: bool = False) -> list[str]:
    """What a module imports and may not, a sentence each."""
    room = module[1] if len(module) > 1 else "__init__"
    wrong = []
    for target in sorted(imported(source, module, package=package)):
        name = ".".join(target)
        if target[0] == "dealer":
            other = target[1] if len(target) > 1 else "__init__"
            if other not in ALLOWED.get(room, set()) | {room}:
                wrong.append(f"{room} may not import {name}")
            continue
        if room not in GUESTS.get(target[0], {room}):
            wrong.append(f"{target[0]} is no guest in {room}")
        dated = room in DATES and target[0] == "datetime"
        if room in PURE and target[0] in NEVER_PURE and not dated:
            wrong.append(f"{room} is pure: no {target[0]}")
        if room in PURE and target[0] not in sys.stdlib_module_names | PURE_GUESTS:
            wrong.append(f"{room} needs the standard library and cryptography, not {target[0]}")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEALER)))
def test_a_module_imports_what_its_room_may(path):
    module = module_of(path)
    assert faults(path.read_text(encoding="utf-8"), module, package=path.stem == "__init__") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEALER)))
def test_a_module_calls_no_clock_or_dice_that_its_room_has_not(path):
    """`os.urandom` and `time.time` come in by names that others may import for other reasons."""
    room = module_of(path)[1:2]
    if room and room[0] in ("service", "client", "lab"):
        return
    clocks = {("os", "urandom"), ("time", "time"), ("time", "time_ns"), ("datetime", "now")}
    calls = {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert calls & clocks == set()


def test_who_only_verifies_needs_no_server():
    """All of errors, game and proof are imported by a fresh interpreter, and no guest comes in."""
    modules = [module_of(path) for path in FILES]
    pure = [".".join(module) for module in modules if module[1:2] and module[1] in PURE]
    assert len(pure) > len(PURE)
    program = (
        "import sys, importlib\n"
        f"for name in {pure!r}: importlib.import_module(name)\n"
        f"print(sorted(set(sys.modules) & {set(GUESTS) - {'secrets', 'random'}!r}))"
    )
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, cwd=DEALER.parent, check=True)
    assert done.stdout.strip() == "[]"


def test_every_room_is_known():
    rooms = {path.name for path in DEALER.iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.stem for path in DEALER.glob("*.py")} - {"__init__", "__main__"}
    assert rooms <= set(ALLOWED)


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("errors", "from dealer.game import cards"),
        ("game", "from dealer.proof import codec"),
        ("game", "import dealer.eventlog"),
        ("game", "from dealer import service"),
        ("game", "from ..proof import codec"),
        ("game", "def f():\n    import asyncio"),
        ("game", "import time"),
        ("proof", "import msgspec"),
        ("proof", "import secrets"),
        ("proof", "from numpy import array"),
        ("eventlog", "from dealer.projector import fold"),
        ("eventlog", "import websockets.asyncio.server"),
        ("service", "import sqlalchemy as sa"),
        ("service", "from sqlalchemy.engine import Engine"),
        ("service", "from dealer.gateway import wire"),
        ("service", "import random"),
        ("gateway", "import secrets"),
        ("gateway", "from dealer.config import Settings"),
        ("client", "from dealer.service import core"),
        ("client", "import sqlalchemy"),
        ("client", "import random"),
        ("proof", "import numpy"),
        ("lab", "from dealer.client import connection"),
        ("history", "from dealer.service import core"),
        ("history", "import time"),
        ("history", "import pokerkit"),
        ("game", "import datetime"),
        ("attic", "from dealer.game import cards"),
    ],
)
def test_a_wrong_import_is_found(room, source):
    assert faults(source, ("dealer", room, "thing"))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("game", "from dealer.errors import Refused\nfrom dealer.game.cards import build"),
        ("game", "from . import cards\nfrom .cards import build"),
        ("proof", "from cryptography.hazmat.primitives import hashes\nimport hashlib"),
        ("client", "import websockets, asyncio, secrets\nfrom dealer.proof import verify"),
        ("lab", "import random, numpy\nfrom dealer.proof import verify"),
        ("history", "from datetime import UTC, datetime\nfrom dealer.proof import verify"),
        ("gateway", "from dealer.history import text"),
        ("cli", "from dealer.service import core\nfrom dealer.client import connection"),
    ],
)
def test_a_right_import_is_not(room, source):
    assert faults(source, ("dealer", room, "thing")) == []


def test_a_relative_import_is_read_from_its_package():
    assert imported("from .. import x", ("dealer", "game", "cards"), package=False) == {
        ("dealer", "x")
    }
    assert imported("from . import x", ("dealer", "game"), package=True) == {
        ("dealer", "game", "x")
    }
