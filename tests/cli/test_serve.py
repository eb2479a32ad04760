"""`dealer serve`: start, stop and error messages."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import stat
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from dealer.cli.process import stop_by_signal
from dealer.config.settings import Settings

from .conftest import Answer, Ask, Played, Serve

pytestmark = pytest.mark.slow

FREE = ("--port", 0, "--ops-port", 0)


def refused(answer: Answer, *words: str) -> None:
    """One message on standard error besides the start line, and exit code 1."""
    assert answer.code == 1
    assert answer.out == ""
    *before, sentence = answer.err.splitlines()
    assert all("  start  " in line for line in before), answer.err
    assert sentence.startswith("dealer: ")
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_starts_without_configuration_and_stops_on_a_signal(
    serve: Serve, tmp_path: Path, how: signal.Signals
) -> None:
    server = serve(*FREE)
    address = server.address
    with urlopen(address, timeout=30) as page:
        assert page.status == 200
        assert b"<html" in page.read()
    key = tmp_path / "dealer.db.key"
    assert (tmp_path / "dealer.db").is_file()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    answer = server.end(how)
    assert answer.code == 0
    assert f"dealer demo --url {address}" in server.hint
    events = [line.split()[2] for line in answer.err.splitlines()]
    assert events == ["start", "migrated", "ready", "drain", "drained", "stop"], answer.err


async def test_a_program_that_ignores_the_end_of_its_terminal_goes_on() -> None:
    """As with `nohup`."""
    stop, before = asyncio.Event(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop_by_signal(stop)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await stop.wait()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)


def test_a_port_in_use_is_reported(serve: Serve, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        refused(serve("--port", port, "--ops-port", 0).ended(), str(port), "in use")
        refused(serve("--port", 0, "--ops-port", port).ended(), str(port), "in use")
        refused(serve("--port", port, "--ops-port", 0, "--database", url).ended(), "in use")
    assert not list(tmp_path.glob("fresh.db*"))


def test_another_port_is_taken_for_the_operator_unless_it_was_asked_for(serve: Serve) -> None:
    with ExitStack() as stack:
        with suppress(OSError):  # another program has it
            stack.enter_context(socket.create_server(("127.0.0.1", Settings.ops_port)))
        server = serve("--port", 0)
        assert server.address
        answer = server.end()
    assert answer.code == 0
    assert "operator's port in use" in answer.err
    assert "another one with --ops-port." in answer.err
    assert not {"--port", "--service-port"} & set(answer.err.split())


def test_another_programs_database_stays_as_it_is(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE cards (face TEXT)")
    file.chmod(0o644)
    before = file.read_bytes()
    refused(ask("serve", "--database", f"sqlite:///{file}", *FREE), "another program")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (before, 0o644)
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_database_that_another_program_locks(ask: Ask, played: Played) -> None:
    with closing(sqlite3.connect(played.file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        answer = ask("serve", "--database", played.url, "--busy", 0, *FREE)
    refused(answer, "Another program holds")


def test_a_damaged_database(ask: Ask, played: Played) -> None:
    played.file.write_bytes(b"this was a database once" * 500)
    refused(ask("serve", "--database", played.url, *FREE), "damaged")


def test_a_database_of_a_newer_program(ask: Ask, played: Played) -> None:
    with closing(sqlite3.connect(played.file)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
    refused(ask("serve", "--database", played.url, *FREE), "newer version")


def test_a_folder_that_cannot_be_written(ask: Ask, tmp_path: Path) -> None:
    answer = ask("serve", "--database", f"sqlite:///{tmp_path}/nowhere/dealer.db", *FREE)
    refused(answer, "cannot be opened", "folder")


def test_a_refused_start_says_all_and_leaves_no_file(ask: Ask, tmp_path: Path) -> None:
    here, key = tmp_path / "here", tmp_path / "nowhere" / "house.key"
    here.mkdir()
    at = ("--database", here / "dealer.db")  # the plain path is an address, too
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as two:
        ports = [str(each.getsockname()[1]) for each in (one, two)]
        taken = ("--port", ports[0], "--service-port", ports[1], "--ops-port", 0)
        refused(ask("serve", *at, *taken), *ports, "--service-port")
    refused(ask("serve", *at, "--house-key", key, *FREE), "cannot be created", "no such folder")
    assert not [*here.iterdir()]


def test_a_missing_house_key(ask: Ask, played: Played) -> None:
    (played.folder / "dealer.db.key").unlink()
    refused(ask("serve", "--database", played.url, *FREE), "missing", "backup")


def test_another_houses_key(ask: Ask, played: Played) -> None:
    (played.folder / "dealer.db.key").write_bytes(bytes(32))
    refused(ask("serve", "--database", played.url, *FREE), "another house's")


def test_a_key_that_others_can_read(ask: Ask, played: Played) -> None:
    (played.folder / "dealer.db.key").chmod(0o644)
    refused(ask("serve", "--database", played.url, *FREE), "chmod 600")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--port", "http"), "--port"),
        (("--port", 70000), "70000"),
        (("--house", "two words"), "without spaces"),
        (("--house", "a+b"), "without +"),
        (("--synchronous", "OFF"), "NORMAL"),
        (("--commit", "both"), "loop"),
        (("--tables", 0), "--tables"),
        (("--limit", "rate"), "NAME=VALUE"),
        (("--limit", "speed=3"), "automatic_rate"),
        (("--limit", "rate=-1"), "above 0"),
        (("--limit", "rate=nan"), "above 0"),
        (("--limit", "tables=2.5"), "whole number"),
        (("--database", "postgresql://localhost/x"), "--house-key"),
        (("--database", "postgresql://localhost"), "postgresql://user:password@"),
        (("--database", "mysql://localhost/x"), "sqlite:///"),
        (("--database", "sqlite:nonsense"), "sqlite:///"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_usage_errors_exit_with_2(ask: Ask, arguments: tuple[object, ...], word: str) -> None:
    answer = ask("serve", *arguments)
    assert answer.code == 2
    assert word in answer.err


def test_a_wrong_variable_is_reported(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEALER_LIMIT_BURST", "many")
    answer = ask("serve", *FREE)
    assert answer.code == 2
    assert "DEALER_LIMIT_BURST" in answer.err


def test_reading_commands_work_while_a_server_runs(ask: Ask, played: Played, serve: Serve) -> None:
    server = serve("--database", played.url, "--house", "house.example", *FREE)
    address = server.address
    for arguments in (
        ("tables",),
        ("audit", "--events", played.closed),
        ("audit", played.closed),
        ("audit", played.open),
        ("export", played.open),
        ("rebuild",),
        ("migrate",),
    ):
        answer = ask(*arguments, "--database", played.url)
        assert answer.code == 0, (arguments, answer)
    answer = ask("audit", played.closed, "--url", address)
    assert answer == ask("audit", played.closed, "--database", played.url)
    unknown = ask("audit", "0" * 32, "--url", address)
    assert unknown.code == 1
    assert "no bundle" in unknown.err
    assert ask("demo", "--url", address).code == 0
    assert server.end().code == 0


def test_an_unreachable_server(ask: Ask) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    for arguments in (("audit", "0" * 32), ("export", "0" * 32), ("demo",)):
        answer = ask(*arguments, "--url", address)
        assert answer.code == 1
        assert "does not answer" in answer.err
    assert ask("demo", "--url", "ftp://127.0.0.1/").code == 2
