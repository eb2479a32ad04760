"""Every command line of the documents and messages exists; those of the examples run.

Those that need a server, an outer program or minutes are run by other tests (`ELSEWHERE`).
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.main import app

from .conftest import Ask, Played

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", ".*/*.md", "dealer/**/*.md", "dealer/**/*.py", "dealer/**/*.js")
    for path in ROOT.glob(pattern)
    if not {"node_modules", ".venv"} & set(path.parts)
)
IN_PROSE = re.compile(r"`(dealer [a-z][^`]*)`")
ALONE = re.compile(r"^(?:\S* ?[|;] )?\s*(dealer [a-z][^#|&;\n]*?)(?=  | *[#|&;]| *$)", re.M)
PROGRAM: Any = app
OLD = ("log", "manifest", "close", "archive", "disable", "enable")
"""Commands that were renamed before the first version."""

ELSEWHERE = (
    "dealer serve",
    "dealer demo",  # test_demo.py
    "dealer bots",  # tests/bots
    "dealer practice",
    "dealer packs check",  # test_packs.py
    "dealer restore",  # test_backup.py
    "dealer verify practice.jsonl",  # test_practice.py
    "dealer lab run",  # test_lab.py, with fewer shuffles
    "dealer lab check",
    "dealer lab costs",
)
NEEDS_MORE = ("--url", "postgresql:", "$", "--forget")
"""A server, a variable of the shell, or a player of that name."""

TABLES = re.compile(r"\b(?:TABLE|7d02f[0-9a-f]+|b81ef[0-9a-f]+)\b")
FIRST = {
    "dealer key revoke": ("key add shop --may read",),
    "dealer webhook": ("key add shop --may read", "key add bots --may read"),
    "dealer webhook enable": ("webhook add https://a.example.org/ --key shop",) * 2,
    "dealer webhook remove": ("webhook add https://a.example.org/ --key shop",) * 2,
    "dealer webhook replay": ("webhook add https://a.example.org/ --key shop",) * 2,
}
"""What an example takes for granted: commands by the beginning of its line."""


def examples_of(path: Path) -> set[str]:
    """The lines of a document's blocks, or of those in the help of commands."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.M | re.S)
    else:
        blocks = re.findall(r"^ {4}```\n(.*?)^ {4}```", text, re.M | re.S)
    return {line for block in blocks for line in ALONE.findall(block.replace("\\\n", " "))}


def lines_of(path: Path) -> set[str]:
    return examples_of(path) | set(IN_PROSE.findall(path.read_text(encoding="utf-8")))


def fault_of(line: str) -> str:
    """What is wrong with a command line; "" if nothing."""
    command = PROGRAM
    words = line.split()[1:]
    while words and getattr(command, "commands", None):
        if words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return "" if getattr(command, "invoke_without_command", False) else words[0]
        command = command.commands[words.pop(0)]
    known = {name for one in command.params for name in one.opts} | {"--help", "-h"}
    options = (word.partition("=")[0].rstrip(".,:") for word in words if word.startswith("-"))
    return ", ".join(option for option in options if option != "-" and option not in known)


def test_the_command_lines_are_known() -> None:
    faults = {
        (str(path.relative_to(ROOT)), line): fault
        for path in DOCUMENTS
        for line in lines_of(path)
        if (fault := fault_of(line))
    }
    assert not faults


def test_unknown_lines_would_be_found() -> None:
    assert fault_of("dealer tables close 0199 --why x") == ""
    assert fault_of("dealer tables --json") == ""
    assert fault_of("dealer audit TABLE --event") == "--event"
    assert [fault_of(f"dealer {name} x") for name in OLD] == list(OLD)
    assert sum(len(lines_of(path)) for path in DOCUMENTS) > 150


EXAMPLES = sorted(
    line
    for line in {line for path in DOCUMENTS for line in examples_of(path)}
    if not line.startswith(ELSEWHERE) and not any(words in line for words in NEEDS_MORE)
)


@pytest.mark.slow
@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs(
    ask: Ask, played: Played, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """In a folder with the database of a game, its bundle and its players' checkpoints."""
    monkeypatch.chdir(played.folder)
    Path("archive").mkdir()
    Path("checkpoints.jsonl").write_text(
        "".join(json.dumps({"note": n}) + "\n" for n in played.saved)
    )
    assert ask("export", played.closed, "-o", "game.jsonl").code == 0
    for beginning, commands in FIRST.items():
        for command in commands if line.startswith(beginning) else ():
            answer = ask(*command.split())
            assert answer.code == 0, answer
    changes = line.startswith(("dealer tables close", "dealer tables disable"))
    line = TABLES.sub(played.open if changes else played.closed, line)
    for folder in ("/var/lib/dealer", "/backups"):
        line = line.replace(folder, str(played.folder))
    line = line.replace("5c2f…", played.key).partition(" > ")[0]
    answer = ask(*shlex.split(line)[1:])
    assert answer.code == 0, answer


def test_most_examples_run() -> None:
    assert len(EXAMPLES) > 45
