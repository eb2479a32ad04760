"""Options that several commands share have one name, and mean one thing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest

from dealer.cli.main import app
from tests.cli.conftest import Ask, Played, Serve


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command with its options."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", {flag for one in command.params for flag in one.opts}


COMMANDS = dict(commands(app))


def test_a_server_has_one_name() -> None:
    assert [name for name, options in COMMANDS.items() if "--server" in options] == []
    taking = {name for name, options in COMMANDS.items() if "--url" in options}
    assert taking == {
        "audit", "bots", "demo", "export", "history", "practice", "state",
    }  # fmt: skip


def test_commands_of_maintenance_share_their_options() -> None:
    for name, options in COMMANDS.items():
        if "--operator" in options:
            assert {"--database", "--house-key"} <= options, name


@pytest.mark.parametrize("command", ["migrate", "rebuild"])
def test_a_key_may_be_given_to_each(ask: Ask, played: Played, command: str) -> None:
    key = played.folder / "dealer.db.key"
    assert ask(command, "--database", played.url, "--house-key", key).code == 0


def test_a_state_of_a_server_is_that_of_its_log(ask: Ask, played: Played, serve: Serve) -> None:
    server = serve("--database", played.url, "--port", 0, "--ops-port", 0)
    address = server.address
    for at in ([], ["--at", 20], ["--at", 20, "--seat", 1, "--json"]):
        there = ask("state", played.closed, *at, "--url", address)
        here = ask("state", played.closed, *at, "--database", played.url)
        assert (there.code, here.code) == (0, 0)
        if "--json" in at:
            assert json.loads(there.out) == json.loads(here.out)
        assert there.out == here.out
    short = ask("state", played.closed[:8], "--url", address)
    assert (short.code, "whole id" in short.err) == (2, True)
