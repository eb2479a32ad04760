"""Every command line that the documents and messages name exists, with its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from dealer.cli.main import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", ".*/*.md", "dealer/**/*.md", "dealer/**/*.py", "dealer/**/*.js")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)
IN_PROSE = re.compile(r"`(dealer [a-z][^`]*)`")
ALONE = re.compile(r"^(?:\S* ?[|;] )?\s*(dealer [a-z][^#|&;\n]*?)(?=  | *[#|&;]| *$)", re.M)
OLD = ("log", "manifest", "close", "archive", "disable", "enable")
"""Commands that were renamed before the first version."""


def lines_of(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    found = set(IN_PROSE.findall(text))
    if path.suffix == ".md":
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.M | re.S):
            found |= set(ALONE.findall(block.replace("\\\n", " ")))
    else:
        for block in re.findall(r"^ {4}```\n(.*?)^ {4}```", text, re.M | re.S):
            found |= set(ALONE.findall(block))
    return found


def fault_of(line: str) -> str:
    """What is wrong with a command line; "" if nothing."""
    command: Any = typer.main.get_command(app)
    words = line.split()[1:]
    while words and getattr(command, "commands", None):
        if words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return "" if getattr(command, "invoke_without_command", False) else words[0]
        command = command.commands[words.pop(0)]
    known = {name for one in command.params for name in one.opts} | {"--help", "-h"}
    if command.name == "dieharder":
        return ""
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
