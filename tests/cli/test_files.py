"""Files that commands write: names, links, modes, devices, pipes and sockets."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from threading import Thread

import pytest

from dealer.cli.output import is_stored, writing
from dealer.errors import ConfigurationError

from .conftest import Ask, Played

OLD, NEW = b"old\n", b"new\n"


def write(name: object, data: bytes = NEW) -> None:
    with writing(str(name)) as file:
        file.write(data)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "game.jsonl"
    file.write_bytes(OLD)
    file.chmod(mode)
    write(file)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (NEW, mode)
    assert names(tmp_path) == {"game.jsonl"}


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_nothing_changes_if_the_content_is_not_complete(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(OLD)
    with pytest.raises(ValueError, match="invalid literal"), writing(str(file)) as opened:
        opened.writelines(NEW if number < 3 else int("x", 16).to_bytes() for number in range(5))
    assert (file.read_bytes(), names(tmp_path)) == (OLD, {"x"})


@pytest.mark.parametrize("there", [True, False])
def test_the_target_of_links_is_replaced_in_its_folder(tmp_path: Path, there: bool) -> None:
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "game.jsonl"
    if there:
        target.write_bytes(OLD)
        target.chmod(0o600)
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(Path("data") / "game.jsonl")
    (tmp_path / "data").chmod(0o755)
    write(tmp_path / "first")
    assert target.read_bytes() == NEW
    assert (tmp_path / "first").readlink() == Path("second")
    assert (tmp_path / "second").is_symlink()
    assert names(tmp_path) == {"data", "first", "second"}
    assert names(target.parent) == {"game.jsonl"}
    assert is_stored(str(tmp_path / "first"))


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ConfigurationError, match="cannot be written: Too many levels"):
        write(tmp_path / "a")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for name in (tmp_path, tmp_path / "link", f"{tmp_path}/new/"):
        with pytest.raises(ConfigurationError, match="is a folder; name a file in it"):
            write(name)
    with pytest.raises(ConfigurationError, match="is empty; name one"):
        write("")
    assert names(tmp_path) == {"link"}


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        reader = Thread(target=lambda: got.append(pipe.read_bytes()))
        reader.start()
        write(tmp_path / name)
        reader.join()
    assert got == [NEW, NEW]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == {"pipe", "link"}
    assert not is_stored(str(pipe))


def test_a_socket_is_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most some hundred bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        listening.listen()
        write("socket")
        client, _ = listening.accept()
        with client, client.makefile("rb") as file:
            assert file.read() == NEW
    assert names(tmp_path) == {"socket"}


def test_a_device_is_written_into() -> None:
    write("/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(ConfigurationError, match="/dev/full cannot be written: No space left"):
        write("/dev/full")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_an_open_file_is_written_into(tmp_path: Path) -> None:
    """As in a shell with `-o /dev/fd/9 9>>log`: it stays the file that the shell has opened."""
    with (tmp_path / "log").open("ab") as file:
        file.write(OLD)
        file.flush()
        inode = (tmp_path / "log").stat().st_ino
        write(f"/dev/fd/{file.fileno()}")
        assert not is_stored(f"/dev/fd/{file.fileno()}")
    assert (tmp_path / "log").read_bytes() == OLD + NEW
    assert (tmp_path / "log").stat().st_ino == inode
    one, other = socket.socketpair()
    with one, other:
        write(f"/dev/fd/{one.fileno()}")
        assert other.recv(100) == NEW


@pytest.mark.slow
def test_a_bundle_on_standard_output(
    ask: Ask, played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ask("export", played.closed, "--database", played.url)
    for name in ("-", "/dev/stdout", "/proc/self/fd/1"):
        assert ask("export", played.closed, "-o", name, "--database", played.url) == plain
    assert names(tmp_path) == {"server"}
    file = ask("export", played.closed, "-o", "./-", "--database", played.url)
    assert "verify ./-" in file.err
    assert (tmp_path / "-").read_text() == plain.out
