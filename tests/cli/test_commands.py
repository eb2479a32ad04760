"""Help texts, their imports, limits and defaults."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.main import app
from dealer.config.settings import LIMITS, SETTINGS, Settings, read_limits
from dealer.errors import ConfigurationError
from dealer.gateway.limits import Limits
from tests.harness.empty_log import empty_log
from tests.harness.programs import output_of

from .conftest import Ask, Played

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "serve", "demo", "audit", "export", "verify", "tables", "rebuild", "migrate",
)  # fmt: skip


def test_help_lists_every_command(ask: Ask) -> None:
    answer = ask("--help")
    assert answer.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in answer.out
    assert ask("-h") == answer
    assert "Usage: dealer" in ask().out + ask().err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_examples(ask: Ask, command: str) -> None:
    answer = ask(command, "--help")
    assert answer.code == 0
    assert any(line.split()[:2] == ["dealer", command] for line in answer.lines)
    assert "dealer " + command + " dealer" not in answer.out
    assert "```" not in answer.out


def test_help_lists_each_command_once_and_cuts_nothing(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    group: Any = app
    listed = ask("--help").out
    for command in group.commands:
        assert len(re.findall(rf"^  {command}(?= )", listed, re.M)) == 1, command
    for page in (("--help",), ("serve", "--help"), ("serve", "--help-all"), ("lab", "run", "-h")):
        shown = ask(*page).out
        assert not re.search(r"…|<[a-z]|\.\.\.(?! *$)", shown.replace("[ARGS]...", "")), page


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("packs check", "[OPTIONS] FILE..."),
        ("lab table", "[OPTIONS] [TABLE]..."),
        ("export", "[OPTIONS] TABLE"),
        ("tables close", "[OPTIONS] [TABLE]"),
        ("lab", "[OPTIONS] COMMAND [ARGS]..."),
    ],
)
def test_a_usage_line_has_brackets_for_what_may_be_left_out_alone(
    ask: Ask, words: str, usage: str
) -> None:
    assert ask(*words.split(), "--help").lines[0] == f"Usage: dealer {words} {usage}"


def test_the_help_of_serve_shows_what_people_use(ask: Ask) -> None:
    shown, whole = ask("serve", "--help").out, ask("serve", "--help-all").out
    options = set(re.findall(r"^  (--[a-z-]+) [A-Z]", shown, re.M))
    assert options == {one.flag for one in SETTINGS if one.common} | {"--limit"}
    assert len(options) == 10
    assert "--help-all" in shown
    assert all(one.flag in whole for one in SETTINGS)
    assert all(f"\n  {name}: " in whole for name in LIMITS)


ADDRESS = f"https://cards.example/a/tables/{'12' * 16}"
ON_A_SERVER = f"`dealer audit {'12' * 16} --url https://cards.example/a` checks a table of a server"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("history nofile.jsonl", 2, "nofile.jsonl is no file, and no table's id"),
        ("state .", 2, ". is a folder, and no table's id"),
        ("verify junk", 2, "junk cannot be read: No such file"),
        ("verify 0199f3", 2, "`dealer audit 0199f3` checks it"),
        ("verify", 2, "or give --manifest"),
        (f"verify {ADDRESS}/bundle.jsonl", 2, ON_A_SERVER),
        (f"history {ADDRESS}", 2, ON_A_SERVER),
        (f"audit {ADDRESS}/audit", 2, ON_A_SERVER),
        ("audit http://localhost:8080/", 2, "`dealer audit TABLE --url ADDRESS` checks a table"),
        ("serve --limit rat=3", 2, "Did you mean rate?"),
        ("audit game.jsonl", 2, "32 hex digits, not 'game.jsonl'"),
        ("audit pyproject.toml", 2, "`dealer verify FILE` checks a bundle"),
        ("tables close junk --why x", 2, "32 hex digits, not 'junk'; its first digits suffice"),
        (f"audit {'a' * 300}", 2, f"32 hex digits, not '{'a' * 80}…'"),
        (f"state {'a' * 300}", 2, "is no file, and no table's id"),
        (f"history {'a' * 300}", 2, "is no file, and no table's id"),
        ("tables --database missing.db", 1, "There is no database missing.db."),
        ("tables --database a/b.db", 1, "There is no database a/b.db."),
        ("tables --database u:secret@db", 1, "write it like sqlite:///dealer.db,"),
        ("tables --json close 0199 --why x", 2, "Give options after close"),
        ("tables close --idle 0 --why x", 2, "--idle must be an age like 90d"),
        ("audit 0199 --after 3", 2, "--after is for --events"),
        ("audit 0199 --events --round 2", 2, "--events takes no"),
    ],
)
def test_wrong_words_are_answered_with_what_helps(
    ask: Ask, words: str, code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    answer = ask(*words.split())
    assert answer.code == code
    assert sentence in answer.err
    assert "secret" not in answer.err


def test_python_runs_the_package() -> None:
    assert output_of(sys.executable, "-m", "dealer", "--version", cwd=ROOT).startswith("dealer ")


def test_help_imports_no_large_package() -> None:
    code = """
import sys
from dealer.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"sqlalchemy", "websockets", "msgspec", "uvloop", "cryptography", "rich", "http.client"}
heavy |= {"dealer.gateway", "dealer.service", "dealer.eventlog", "dealer.client", "dealer.lab"}
print(*(heavy & sys.modules.keys()))
"""
    assert output_of(sys.executable, "-c", code, cwd=ROOT).splitlines()[-1] == ""


NOT_ON_SQLITE = {
    "aiosqlite",
    "alembic",
    "asyncpg",
    "dealer.bots",
    "dealer.cli.commands.verify",
    "dealer.client",
    "dealer.eventlog.postgres",
    "dealer.gateway.identity",
    "dealer.gateway.schema.openrpc",
    "dealer.lab",
    "greenlet",
    "http.client",
    "http.server",
    "jwt",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "rich",
    "sqlalchemy",
    "urllib.request",
}
"""What a server on an existing SQLite file imports at first use, if at all."""


def test_a_server_on_sqlite_imports_what_it_uses(tmp_path: Path) -> None:
    url = empty_log(tmp_path / "dealer.db")
    code = f"""
import os, signal, sys
from dealer.cli import main
from dealer.cli.commands import serve
def ready(*_):
    print(*sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)
serve._print_address = ready
main(["serve", "--port", "0", "--ops-port", "0", "--database", {url!r}])
"""
    modules = set(output_of(sys.executable, "-c", code, cwd=ROOT).splitlines()[0].split())
    assert "dealer.gateway.server" in modules
    assert modules & NOT_ON_SQLITE == set()


def test_help_needs_no_docstrings() -> None:
    for page in ("--help", "serve --help", "tables archive --help"):
        command = ("-m", "dealer", *page.split())
        whole = output_of(sys.executable, *command, cwd=ROOT)
        assert output_of(sys.executable, "-OO", *command, cwd=ROOT) == whole


@pytest.mark.parametrize(
    ("words", "completed"), [("dealer verif", "verify"), ("dealer tables close --wh", "--why")]
)
def test_a_shell_completes_words(
    monkeypatch: pytest.MonkeyPatch, words: str, completed: str
) -> None:
    monkeypatch.setenv("_DEALER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    answer = output_of(sys.executable, "-m", "dealer", cwd=ROOT)
    assert answer.splitlines() == [f"plain,{completed}"]


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(played: Played) -> None:
    log = (
        f"{sys.executable} -m dealer audit {played.closed} --events --json --database {played.url}"
    )
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
