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


@pytest.mark.parametrize(
    "words",
    [
        "tables --database a.db --database b.db",
        "tables --json --limit 1 --limit 2",
        "state abc --at 1 --at=1",
        "tables --json --json",
        "serve --port 1 --port 2",
        "key add x --why a --why=b",
        "lab run --shuffles 3 --seed 1 --shuffles 4",
        "webhook list --database a --database b",
        "packs check --database a",
    ],
)
def test_an_option_that_is_given_twice_is_refused(ask: Ask, words: str) -> None:
    answer = ask(*words.split())
    assert answer.code == 2
    expected = "No such option" if words.startswith("packs") else "is given more than once"
    assert expected in " ".join((answer.out + answer.err).replace("│", " ").split())


def test_an_option_that_may_be_repeated_is_read_each_time(ask: Ask, tmp_path: Path) -> None:
    notes = [tmp_path / name for name in ("one", "two")]
    for note in notes:
        note.write_text("no note")
    answer = ask("verify", str(notes[0]), "--saved", str(notes[0]), "--saved", str(notes[1]))
    assert answer.code == 1
    assert "more than once" not in answer.out + answer.err


def test_a_limit_is_given_once() -> None:
    with pytest.raises(ConfigurationError, match="--limit rate is given more than once"):
        read_limits(["rate=20", "burst=5", "rate=30"], {})
    assert read_limits(["rate=20"], {"DEALER_LIMIT_RATE": "30"}).rate == 20
