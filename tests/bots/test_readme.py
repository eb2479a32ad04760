"""The examples of dealer/bots/README.md."""

from __future__ import annotations

import json
import shlex
from typing import Any

from dealer.bots.links import read_link
from dealer.cli.main import app
from dealer.game.rules import Rules
from tests.docs.test_blocks import example

README = "dealer/bots/README.md"


def options_of(command: str) -> set[str]:
    group: Any = app
    return {name for one in group.commands[command].params for name in one.opts}


def test_the_command() -> None:
    dealer, bots, count, table = shlex.split(example(README, "sh"))
    assert (dealer, bots, count.isdigit()) == ("dealer", "bots", True)
    assert read_link(table, server="ws://localhost/ws").table in table


def test_the_settings_of_an_agent() -> None:
    server = json.loads(example(README, "json", "mcpServers"))["mcpServers"]["dealer"]
    command, *arguments = server["args"]
    assert (server["command"], command) == ("dealer", "mcp")
    assert set(arguments[::2]) <= options_of("mcp")


def test_the_rule_of_test_decks() -> None:
    Rules.check(json.loads(example(README, "json", "insecure_test_deck")))
