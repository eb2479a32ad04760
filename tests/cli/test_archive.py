"""`dealer tables archive`: closed tables become verifiable files, also after any crash."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from dealer import cli
from dealer.proof.bundle import CHECKPOINT, read
from dealer.proof.verify import verify
from dealer.service.operations import archiver
from dealer.service.operations.forgetting import forget

from .conftest import Ask, Played, Serve

pytestmark = pytest.mark.slow

POINTS = {
    "the bundle is verified": ("dealer.service.operations.archiver:require_valid", "end", "1"),
    "the draft is on disk": (
        "dealer.service.operations.archiver:write_file",
        "call os:replace",
        "1",
    ),
    "the bundle has its name": (
        "dealer.service.operations.archiver:write_file",
        "call dealer.service.operations.archiver:sync_folder",
        "1",
    ),
    "the file is verified": ("dealer.service.operations.archiver:require_valid", "end", "2"),
    "the table is archived": ("dealer.service.identity.admin:AdminService.archive", "end", "1"),
    "some rows are deleted": ("dealer.service.operations.archiver:delete_slice", "end", "1"),
}
"""Points at which the process is killed, as arguments of `tests/harness/dies_at.py`."""
ROOT = Path(__file__).parents[2]
DIES_AT = str(ROOT / "tests" / "harness" / "dies_at.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "archive"
    made.mkdir()
    return made


def rows(played: Played, sql: str) -> list[Any]:
    with closing(sqlite3.connect(played.file)) as database:
        return database.execute(sql).fetchall()


def check_file(file: Path, played: Played) -> bytes:
    data = file.read_bytes()
    report = verify(read(data), key=played.key, saved=played.saved)
    assert report.ok, report.fault
    return data


def test_archiving_writes_a_file_and_deletes_all_rows(
    ask: Ask, played: Played, folder: Path
) -> None:
    whole = ask("export", played.closed, "--database", played.url).out.encode()
    answer = ask(
        "tables", "archive", played.closed, "--to", folder, "--database", played.url,
        "--why", "old", "--operator", "Zoe",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    data = check_file(folder / f"{played.closed}.jsonl", played)
    assert data == whole
    number = f"(SELECT id FROM stream WHERE hex(table_id) = upper('{played.closed}'))"
    for table in (
        "event", "checkpoint", "tables", "seats", "rounds", "shuffles", "swaps", "moves", "deck",
        "hands", "piles",
    ):  # fmt: skip
        assert rows(played, f"SELECT count(*) FROM {table} WHERE stream = {number}") == [(0,)]
    ((left,),) = rows(played, f"SELECT count(*) FROM event WHERE stream <> {number}")
    assert left > 0
    assert rows(played, "SELECT sha256 FROM archived") == [(sha256(data).digest(),)]
    (line,) = ask("journal", "--database", played.url, "--json").lines[:1]
    entry = json.loads(line)
    assert (entry["who"], entry["what"], entry["target"]) == ("Zoe", "archive", played.closed)
    assert entry["details"]["sha256"] == sha256(data).hexdigest()


def test_other_commands_report_an_archived_table(ask: Ask, played: Played, folder: Path) -> None:
    before = ask("tables", "--database", played.url).lines
    ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    after = ask("tables", "--database", played.url).lines
    assert after == [line for line in before if played.closed not in line] + [
        "1 more is archived; see `dealer journal`."
    ]
    for command in (
        ("export",), ("audit",), ("history",), ("audit", "--events"),
        ("tables", "archive", "--to", folder),
        ("tables", "disable", "--why", "x"), ("tables", "close", "--why", "x"),
    ):  # fmt: skip
        answer = ask(*command, played.closed, "--database", played.url)
        assert (answer.code, answer.out) == (1, "")
        assert f"{played.closed}.jsonl in the folder" in answer.err
        for reader in ("history", "state", "verify", "lab table"):
            assert f"`dealer {reader} FILE`" in answer.err
            assert ask(*reader.split(), folder / f"{played.closed}.jsonl").code == 0
    rebuilt = ask("rebuild", "--database", played.url)
    assert rebuilt.code == 0, rebuilt.out
    assert ask("audit", "--events", played.open, "--database", played.url).lines


def test_only_closed_and_old_enough_tables_are_archived(
    ask: Ask, played: Played, folder: Path
) -> None:
    answer = ask("tables", "archive", played.open, "--to", folder, "--database", played.url)
    assert answer.code == 1
    assert "Only a closed table" in answer.err
    young = ask("tables", "archive", "--older-than", "1d", "--to", folder, "--database", played.url)
    assert young.out.startswith("0 tables archived")
    assert ask("tables", "archive", "--older-than", "9y", "--to", folder).code == 2
    assert ask("tables", "archive", "--to", folder).code == 2
    old = ask("tables", "archive", "--older-than", "0m", "--to", folder, "--database", played.url)
    assert old.out.startswith("1 table archived")


def test_triggers_refuse_to_delete_events_that_are_not_archived(
    ask: Ask, played: Played, folder: Path
) -> None:
    ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    with closing(sqlite3.connect(played.file)) as database:
        for wrong in (
            "DELETE FROM event",
            "UPDATE event SET at = 0",
            "DELETE FROM archived",
            "UPDATE archived SET size = 1",
            "DELETE FROM journal",
            "UPDATE journal SET who = 'nobody'",
            "INSERT INTO archived SELECT id, version, x'', x'', '', 0, x'', 0, 0 FROM stream"
            " WHERE id NOT IN (SELECT stream FROM archived)",
        ):
            with pytest.raises(sqlite3.IntegrityError, match=r"never changed|only a closed"):
                database.execute(wrong)


def test_a_bundle_that_does_not_verify_deletes_nothing(
    ask: Ask, played: Played, folder: Path
) -> None:
    with closing(sqlite3.connect(played.file)) as database, database:
        database.execute("DROP TRIGGER event_refuses_update")
        database.execute(
            "UPDATE event SET public = replace(public, '[51,', '[50,')"
            " WHERE id = (SELECT min(id) FROM event WHERE type = 'S')"
        )
    before = rows(played, "SELECT count(*) FROM event")
    answer = ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    assert answer.code == 1
    assert f"`dealer audit {played.closed}`" in answer.err
    assert rows(played, "SELECT count(*) FROM event") == before
    assert rows(played, "SELECT count(*) FROM archived") == [(0,)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET public = replace(public, '[51,', '[50,')"
        " WHERE id = (SELECT min(id) FROM event WHERE type = 'S')",
        "UPDATE event SET public = '{' WHERE id = (SELECT min(id) FROM event)",
        "DELETE FROM checkpoint WHERE stream = (SELECT min(stream) FROM event)",
    ],
)
def test_a_table_that_does_not_verify_does_not_affect_the_others(
    ask: Ask, played: Played, folder: Path, damage: str
) -> None:
    assert ask("tables", "close", played.open, "--why", "x", "--database", played.url).code == 0
    with closing(sqlite3.connect(played.file)) as database, database:
        database.execute("DROP TRIGGER event_refuses_update")
        (first,) = database.execute("SELECT id FROM stream ORDER BY id").fetchone()
        database.execute(damage)
        left = database.execute("SELECT count(*) FROM event WHERE stream = ?", (first,)).fetchone()
    answer = ask(
        "tables", "archive", "--older-than", "0m", "--to", folder, "--database", played.url
    )
    assert answer.code == 1
    assert answer.out.startswith("1 table archived")
    assert f"deleted: {played.closed}." in answer.err
    assert "`dealer audit TABLE`" in answer.err
    assert [one.name for one in folder.iterdir()] == [f"{played.open}.jsonl"]
    assert rows(played, "SELECT count(*) FROM event") == [left]


def test_a_cosignature_that_arrives_meanwhile_is_not_lost(
    ask: Ask, played: Played, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file = archiver.write_file
    times: list[int] = []

    def add_cosignature(file: Path, data: bytes, draft: Path) -> None:
        write_file(file, data, draft)
        if not times:
            with closing(sqlite3.connect(played.file)) as database, database:
                (note,) = database.execute(
                    "SELECT note FROM checkpoint ORDER BY stream, size DESC"
                ).fetchone()
                changed = note + note.splitlines()[-1] + "\n"
                database.execute("UPDATE checkpoint SET note = ? WHERE note = ?", (changed, note))
        times.append(1)

    monkeypatch.setattr(archiver, "write_file", add_cosignature)
    answer = ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    assert len(times) == 1
    assert answer.code == 1
    assert "does not verify" in answer.err  # the doubled signature: the table was read again
    assert rows(played, "SELECT count(*) FROM archived") == [(0,)]


def test_two_processes_do_not_overwrite_each_others_files(
    ask: Ask, played: Played, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts: list[Path] = []
    other: list[subprocess.CompletedProcess[str]] = []
    write_file = archiver.write_file

    def archive_in_another_process(file: Path, data: bytes, draft: Path) -> None:
        drafts.append(draft)
        command = [sys.executable, "-m", "dealer", "tables", "archive", played.closed]
        command += ["--to", str(folder), "--database", played.url]
        other.append(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False))
        write_file(file, data, draft)

    monkeypatch.setattr(archiver, "write_file", archive_in_another_process)
    answer = ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    assert answer.code == 0, answer.err
    assert other[0].returncode == 1
    assert f"is running in {folder}" in other[0].stderr
    (file,) = folder.iterdir()
    check_file(file, played)
    # Where the folder cannot be locked the drafts have different names.
    assert re.fullmatch(rf"{played.closed}\.jsonl\.[0-9a-f]{{8}}\.part", drafts[0].name)


@pytest.mark.parametrize("point", POINTS)
def test_no_table_is_lost_when_the_process_is_killed(
    ask: Ask, played: Played, folder: Path, point: str
) -> None:
    before = rows(played, "SELECT count(*) FROM event")[0][0]
    command = [
        sys.executable,
        DIES_AT,
        *POINTS[point],
        "tables",
        "archive",
        played.closed,
    ]
    command += ["--to", str(folder), "--database", played.url]
    died = subprocess.run(command, cwd=ROOT, timeout=120, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    file = folder / f"{played.closed}.jsonl"
    archived = rows(played, "SELECT count(*) FROM archived")[0][0]
    left = rows(played, "SELECT count(*) FROM event")[0][0]
    assert archived == (point in ("the table is archived", "some rows are deleted"))
    assert left == before or archived
    if archived:
        check_file(file, played)
        answer = ask(
            "tables", "archive", "--older-than", "0m", "--to", folder, "--database", played.url
        )
        assert answer.out.startswith("0 tables archived"), answer
    else:
        assert ask("audit", played.closed, "--database", played.url).code == 0
        answer = ask("tables", "archive", played.closed, "--to", folder, "--database", played.url)
    assert answer.code == 0, answer
    check_file(file, played)
    assert [one.name for one in folder.iterdir()] == [file.name]
    left_over = "SELECT count(*) FROM event WHERE stream IN (SELECT stream FROM archived)"
    assert rows(played, left_over) == [(0,)]


def test_the_operator_closes_idle_tables(ask: Ask, played: Played, folder: Path) -> None:
    closing_all = ("tables", "close", "--idle", "0m", "--why", "gone")
    answer = ask(*closing_all, "--database", played.url)
    assert (answer.code, answer.out) == (0, "1 table closed.\n"), answer.err
    entry = json.loads(ask("journal", "--database", played.url, "--json").lines[0])
    assert (entry["what"], entry["target"], entry["why"]) == (
        "close",
        played.open,
        "gone",
    )
    assert ask(*closing_all, "--database", played.url).out == "0 tables closed.\n"
    once = ask("tables", "close", played.open, "--why", "x", "--database", played.url)
    assert (once.code, once.err) == (1, f"dealer: Table {played.open} is closed already.\n")
    assert ask("tables", "close", "--why", "x", "--database", played.url).code == 2
    answer = ask(
        "tables", "archive", "--older-than", "0m", "--to", folder, "--database", played.url
    )
    assert answer.out.startswith("2 tables archived"), answer.err
    for file in folder.iterdir():
        assert verify(read(file.read_bytes()), key=played.key).ok


def test_a_closed_table_cannot_be_disabled(ask: Ask, played: Played) -> None:
    answer = ask("tables", "disable", played.closed, "--why", "x", "--database", played.url)
    assert answer.code == 1
    assert "is closed; no seat or round" in answer.err
    assert ask("tables", "enable", played.closed, "--database", played.url).code == 0
    assert ask("tables", "disable", played.open, "--why", "x", "--database", played.url).code == 0


def error_body(address: str, code: int) -> str:
    with pytest.raises(HTTPError) as caught:
        urlopen(address, timeout=30)
    assert caught.value.code == code
    return caught.value.read().decode()


def test_the_server_serves_archived_bundles(
    ask: Ask, played: Played, folder: Path, serve: Serve
) -> None:
    options = ("--database", played.url, "--port", 0, "--ops-port", 0)
    server = serve(*options, "--archive", folder)
    table = f"{server.address}tables/{played.closed}"
    with urlopen(f"{table}/bundle.jsonl", timeout=30) as answer:
        before = answer.read()
    assert (
        ask("tables", "archive", played.closed, "--to", folder, "--database", played.url).code == 0
    )
    assert "archived" in error_body(table, 410)
    with urlopen(f"{table}/bundle.jsonl", timeout=30) as answer:
        assert answer.read() == before
    with urlopen(f"{table}/audit", timeout=30) as answer:
        assert answer.status == 200
    (folder / f"{played.closed}.jsonl").write_bytes(before[:-2])
    assert "later" in error_body(f"{table}/bundle.jsonl", 503)
    (folder / f"{played.closed}.jsonl").unlink()
    assert "not here" in error_body(f"{table}/bundle.jsonl", 410)
    without_archive = serve(*options)
    assert "not kept here" in error_body(
        f"{without_archive.address}tables/{played.closed}/bundle.jsonl", 410
    )


def unsigned(data: bytes) -> bytes:
    """A file without its signed heads: base64 may spell a short name by chance."""
    return b"".join(line for line in data.splitlines(True) if not line.startswith(CHECKPOINT))


def test_a_player_is_forgotten(ask: Ask, played: Played, folder: Path, serve: Serve) -> None:
    """Before and after archiving; the server serves the new bundle, its history and its page."""
    file = folder / f"{played.closed}.jsonl"
    story = ask("history", played.closed, "--database", played.url).out
    names = re.findall(r"(\w+) (?:takes|took|sits)", story)
    assert len(names) > 1, story
    options = ("--to", folder, "--database", played.url)
    assert ask("tables", "archive", played.open, *options, "--forget", names[0]).code == 1
    unknown = ask("tables", "archive", played.closed, *options, "--forget", "Dora")
    assert (unknown.code, file.exists()) == (1, False)
    assert "No player of the name or seat 'Dora'" in unknown.err
    assert ask("tables", "archive", *options, "--older-than", "1d", "--forget", "Ann").code == 2

    text = (Path(cli.__file__).parent / "FORGETTING.md").read_text(encoding="utf-8")
    (line,) = re.findall("^dealer (.*)$", text, re.MULTILINE)
    line = line.replace("--to archive", f"--to {folder}").replace("TABLE", played.closed)
    line = line.replace("NAME-OR-SEAT", names[0])
    answer = ask(*shlex.split(line), "--database", played.url)
    assert answer.code == 0, answer.err
    assert names[0].encode() not in unsigned(check_file(file, played))
    answer = ask(
        "tables", "archive", played.closed, *options, "--forget", names[1], "--why", "asked"
    )
    assert answer.code == 0, answer.err
    (count, noun, versions) = re.findall(r"withholds (\d+) (.*): (.*)\.$", answer.out.strip())[0]
    assert len(versions.split(", ")) == int(count)
    assert noun == ("name or text" if count == "1" else "names or texts")
    data = check_file(file, played)
    assert names[1].encode() not in unsigned(data)
    assert rows(played, "SELECT sha256, length FROM archived") == [
        (sha256(data).digest(), len(data))
    ]
    entries = [json.loads(one) for one in ask("journal", "--database", played.url, "--json").lines]
    assert [one["what"] for one in entries[:3]] == ["forget", "forget", "archive"]
    assert names[1] not in json.dumps(entries)
    assert "Names or texts withheld: " in ask("verify", file).out
    assert names[1] not in ask("history", file).out
    twice = ask("tables", "archive", played.closed, *options, "--forget", names[1])
    assert twice.code == 1

    server = serve("--database", played.url, "--port", 0, "--ops-port", 0, "--archive", folder)
    table = f"{server.address}tables/{played.closed}"
    for what in ("bundle.jsonl", "history.txt"):
        with urlopen(f"{table}/{what}", timeout=30) as page:
            assert names[1].encode() not in unsigned(page.read())


def test_an_interrupted_forgetting_is_finished(ask: Ask, played: Played, folder: Path) -> None:
    """The new file has its name, but the database has the hash of the one before."""
    file = folder / f"{played.closed}.jsonl"
    options = ("--to", folder, "--database", played.url)
    assert ask("tables", "archive", played.closed, *options).code == 0
    file.write_bytes(b"".join(line + b"\n" for line in forget(read(file.read_bytes()), "1").lines))
    again = ask("tables", "archive", played.closed, *options, "--forget", "1")
    assert (again.code, "the names and texts of the interrupted run." in again.out) == (0, True)
    data = check_file(file, played)
    assert rows(played, "SELECT sha256 FROM archived") == [(sha256(data).digest(),)]
    file.write_bytes(data[:-2])
    assert ask("tables", "archive", played.closed, *options, "--forget", "2").code == 1
