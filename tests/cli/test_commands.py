"""Help texts, their imports, limits and defaults."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from dealer.config import LIMITS, Settings, read_limits
from dealer.errors import ConfigurationError
from dealer.gateway.limits import Limits
from tests.harness.programs import output_of

from .conftest import Ask, Played

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "serve", "demo", "audit", "export", "verify", "tables", "log", "rebuild", "migrate",
)  # fmt: skip


def test_help_lists_every_command(ask: Ask) -> None:
    answer = ask("--help")
    assert answer.code == 0
    for command in COMMANDS:
        assert f"│ {command} " in answer.out
    assert ask("-h") == answer
    assert "Usage: dealer" in ask().out + ask().err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_examples(ask: Ask, command: str) -> None:
    answer = ask(command, "--help")
    assert answer.code == 0
    assert any(line.split()[:2] == ["dealer", command] for line in answer.lines)
    assert "dealer " + command + " dealer" not in answer.out
    assert "```" not in answer.out


def test_help_imports_no_large_package() -> None:
    code = """
import sys
from dealer.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"sqlalchemy", "websockets", "msgspec", "uvloop", "cryptography", "prometheus_client"}
print(*(heavy & sys.modules.keys()))
"""
    assert output_of(sys.executable, "-c", code, cwd=ROOT).splitlines()[-1] == ""


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(played: Played) -> None:
    log = f"{sys.executable} -m dealer.cli log {played.closed} --json --database {played.url}"
    done = subprocess.run(
        f"{log} | head -1", shell=True, capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_every_limit_can_be_set_and_has_a_help_text() -> None:
    assert list(LIMITS) == [one.name for one in fields(Limits)]
    assert read_limits((), {}) == Limits()
    limits = read_limits(
        ["rate=2.5", "connections-per-address=7"],
        {"DEALER_LIMIT_RATE": "9", "DEALER_LIMIT_BURST": "3", "DEALER_LIMIT_DRAIN": ""},
    )
    assert limits == Limits(rate=2.5, connections_per_address=7, burst=3.0)


def test_settings_have_defaults_and_are_checked() -> None:
    settings = Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.limits == Limits()
    for wrong in ({"house": ""}, {"house": "a\u00a0b"}, {"port": -1}, {"batch": 0}):
        with pytest.raises(ConfigurationError):
            Settings(**wrong)
