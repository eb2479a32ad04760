"""`dealer config`: settings, their sources and their texts."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from dealer import version
from dealer.config.checks import PASSWORD_FILE_VARIABLE, masked, with_password
from dealer.config.settings import LIMITS, SETTINGS, Settings
from dealer.errors import ConfigurationError
from dealer.eventlog.sqlite.wal import library_version
from dealer.version import __version__
from tests.harness.programs import output_of

from .conftest import Ask


def settings_of(ask: Ask, *arguments: object) -> dict[str, dict[str, str]]:
    answer = ask("config", *arguments, "--json")
    assert answer.code == 0, answer.err
    lines = [json.loads(line) for line in answer.lines]
    library = lines.pop()
    assert (library["variable"], library["source"]) == ("SQLite", "library")
    return {line["variable"]: line for line in lines}


def test_default_environment_and_flag(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEALER_PORT", "81")
    monkeypatch.setenv("DEALER_HOST", "0.0.0.0")
    monkeypatch.setenv("DEALER_ORIGIN", "https://a.example https://b.example")
    monkeypatch.setenv("DEALER_HOST_NAME", "a.example *.b.example")
    monkeypatch.setenv("DEALER_LIMIT_RATE", "20")
    monkeypatch.setenv("DEALER_LIMIT_BURST", "50")
    found = settings_of(ask, "--port", 82, "--limit", "burst=60", "--trusted-proxy", "10.0.0.0/8")
    values = {name: (one["value"], one["source"]) for name, one in found.items()}
    assert values["DEALER_PORT"] == ("82", "flag")
    assert values["DEALER_HOST"] == ("0.0.0.0", "environment")
    assert values["DEALER_OPS_HOST"] == ("127.0.0.1", "default")
    assert values["DEALER_ORIGIN"] == ("https://a.example https://b.example", "environment")
    assert values["DEALER_HOST_NAME"] == ("a.example *.b.example", "environment")
    assert values["DEALER_TRUSTED_PROXY"] == ("10.0.0.0/8", "flag")
    assert values["DEALER_LIMIT_RATE"] == ("20.0", "environment")
    assert values["DEALER_LIMIT_BURST"] == ("60.0", "flag")
    assert values["DEALER_LIMIT_DRAIN"] == ("30.0", "default")
    assert len(found) == len(SETTINGS) + len(LIMITS)
    *lines, library = ask("config").lines
    assert library == f"SQLite {library_version()}"
    assert len(lines) == len(found)
    assert all(line.startswith("--") or PASSWORD_FILE_VARIABLE in line for line in lines)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///dealer.db", "sqlite:///dealer.db"),
        ("postgresql://d:s3cret@db:5432/dealer", "postgresql://d:***@db:5432/dealer"),
        ("postgresql://d:p@ss@db/dealer", "postgresql://d:***@db/dealer"),
        ("postgresql://d@db/dealer", "postgresql://d@db/dealer"),
        ("postgresql://db/x?password=s3cret&sslmode=on", "postgresql://db/x?password=***&sslmode=on"),
        ("postgresql://db/x?passfile=/run/pass", "postgresql://db/x?passfile=/run/pass"),
        ("postgresql://db/x?sslpassword=s3cret", "postgresql://db/x?sslpassword=***"),
        ("sqlite:////data/a:b@c%3Fpass=1.db", "sqlite:////data/a:b@c%3Fpass=1.db"),
    ],
)  # fmt: skip
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("postgresql://ada@db/log", "postgresql://ada:p%40ss%2F%20@db/log"),
        (
            "postgresql+asyncpg://ada@db:1/log?x=y",
            "postgresql+asyncpg://ada:p%40ss%2F%20@db:1/log?x=y",
        ),
        ("postgresql://ada:known@db/log", "postgresql://ada:known@db/log"),
        ("postgresql://db/log", "postgresql://db/log"),
        ("sqlite:///ada@db", "sqlite:///ada@db"),
    ],
)
def test_a_password_from_a_file(tmp_path: Path, url: str, whole: str) -> None:
    file = tmp_path / "password"
    file.write_text("p@ss/ \n")
    assert with_password(url, {PASSWORD_FILE_VARIABLE: str(file)}) == whole
    assert with_password(url, {}) == url


def test_a_missing_password_file(ask: Ask, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(PASSWORD_FILE_VARIABLE, str(tmp_path / "nothing"))
    answer = ask("config", "--database", "postgresql://ada@db/log")
    assert answer.code == 2
    assert PASSWORD_FILE_VARIABLE in answer.err
    (tmp_path / "password").write_text("sesame")
    monkeypatch.setenv(PASSWORD_FILE_VARIABLE, str(tmp_path / "password"))
    answer = ask("config", "--database", "postgresql://ada@db/log", "--house-key", "key")
    assert "postgresql://ada:***@db/log" in answer.out
    assert "sesame" not in answer.out
    assert "SQLite" not in answer.lines[-1]
    (line,) = [line for line in answer.out.splitlines() if PASSWORD_FILE_VARIABLE in line]
    assert line.endswith("environment")


def test_help_has_the_texts_of_the_settings(ask: Ask) -> None:
    shown = " ".join(ask("serve", "--help-all").out.split())
    for setting in filter(lambda one: one.flag, SETTINGS):
        assert setting.flag in shown
        assert setting.variable in shown
        assert setting.help.split(",")[0].split("`")[0].strip() in shown, setting.help
    for name, what in LIMITS.items():
        assert name in shown
        assert what in shown


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--trusted-proxy", "everybody"), "10.0.0.0/8"),
        (("--host-name", "http://cards.example.org/"), "without scheme, port or path"),
        (("--host-name", "cards.example.org:8080"), "without scheme, port or path"),
        (("--log-format", "xml"), "json"),
        (("--log-level", "loud"), "WARNING"),
        (("--ops-port", 70000), "70000"),
        (("--port", "many"), "a whole number, not 'many'"),
        (("--busy", "-1"), "0 or more, not '-1'"),
        (("--busy", "nan"), "0 or more, not 'nan'"),
        (("--archive", "/no/such"), "There is no folder /no/such"),
    ],
)
def test_wrong_settings_exit_with_2(ask: Ask, arguments: tuple[object, ...], word: str) -> None:
    for command in ("config", "serve"):
        answer = ask(command, *arguments)
        assert answer.code == 2
        assert word in answer.err


def test_settings_are_printed_before_an_error(ask: Ask) -> None:
    answer = ask("config", "--database", "postgresql://ada:sesame@db/log")
    assert answer.code == 2
    assert "postgresql://ada:***@db/log" in answer.out
    assert "house key's file" in " ".join(answer.err.split())


def test_version(ask: Ask) -> None:
    answer = ask("--version")
    assert re.fullmatch(rf"dealer {re.escape(__version__)}\+[0-9a-f]{{12}}\n", answer.out)
    assert answer.out == ask("--version").out


def test_another_line_of_code_is_another_version(tmp_path: Path) -> None:
    package = shutil.copytree(Path(version.__file__).parent, tmp_path / "dealer")
    program = "from dealer.version import running_version; print(running_version())"
    said = [output_of(sys.executable, "-c", program, cwd=tmp_path)]
    with (package / "game" / "shuffle.py").open("a") as file:
        file.write("# more\n")
    said.append(output_of(sys.executable, "-c", program, cwd=tmp_path))
    assert said[0].strip() == version.running_version() != said[1].strip()


QUOTED = ['"sqlite:///x.db"', "'postgresql://u:secret@h/d'", '"sqlite:///x.db', "“sqlite:///x.db”"]


@pytest.mark.parametrize("address", QUOTED)
def test_an_address_in_quotation_marks_is_refused_by_name(address: str) -> None:
    """As a file for Docker's --env-file passes it on."""
    for refused in (lambda: with_password(address, {}), lambda: Settings(database=address)):
        with pytest.raises(
            ConfigurationError, match="is in quotation marks: leave them out"
        ) as found:
            refused()
        assert "secret" not in str(found.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("host", '"::1"'), ("house_key", Path("'/key'")), ("origins", ('"https://a.example"',)),
     ("commit", '"fast"'), ("house", "'cards.example.org'"), ("trusted_proxies", ('"10.0.0.1"',))],
)  # fmt: skip
def test_other_settings_in_quotation_marks_are_refused_too(setting: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^--[a-z-]+ \(DEALER_[A-Z_]+\) is in quotation"):
        Settings(**{setting: value})
    assert Settings(title='"Aces"').title == '"Aces"'


def test_the_brackets_of_an_address_are_taken_off() -> None:
    settings = Settings(host="[::1]", ops_host="[::]", service_host="[fe80::1%lo]")
    assert (settings.host, settings.ops_host, settings.service_host) == ("::1", "::", "fe80::1%lo")
