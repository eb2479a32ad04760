"""The examples of dealer/bots/README.md."""

from __future__ import annotations

import json
import shlex

from dealer.bots.links import read_link
from dealer.game.rules import Rules
from tests.docs.test_blocks import example

README = "dealer/bots/README.md"


def test_the_command() -> None:
    dealer, bots, count, table = shlex.split(example(README, "sh"))
    assert (dealer, bots, count.isdigit()) == ("dealer", "bots", True)
    assert read_link(table, server="ws://localhost/ws").table in table


def test_the_rule_of_test_decks() -> None:
    Rules.check(json.loads(example(README, "json", "insecure_test_deck")))
