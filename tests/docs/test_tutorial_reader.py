"""The reader of tutorials notices what does not come out as the document says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.tutorial import Reader, blocks


def shell(text: str, shown: str = "") -> str:
    expected = f"```text\n{shown}\n```\n" if shown else ""
    return f"```sh\n{text}\n```\n{expected}"


@pytest.mark.parametrize(
    "document",
    [
        shell("echo a  b"),
        shell("echo a b; echo c; echo d", "a b\nd"),
        shell("echo 51 Kc 44", "51  …  44"),
        shell("x=1") + shell('echo "$x"', "1"),
        shell("f() { echo in f; }") + shell("f", "in f"),
        shell("cat"),
        shell("# Terminal 1\nsleep 600 & echo started; wait", "started")
        + shell("# Terminal 2\nls"),
        "Save this as `a.py`:\n```python\nprint('printed')\n```\n"
        + shell("python a.py", "printed"),
    ],
)
async def test_what_comes_out_right(document: str, tmp_path: Path) -> None:
    async with Reader(tmp_path) as reader:
        await reader.follow(document)


@pytest.mark.parametrize(
    "document",
    [
        shell("false"),
        shell("false | cat"),
        shell("echo a", "b"),
        shell("echo b; echo a", "a\nb"),
        shell("echo b", "b…"),
        "Save this as `a.py`:\n```python\nraise SystemExit(1)\n```\n" + shell("python a.py"),
    ],
)
async def test_what_does_not(document: str, tmp_path: Path) -> None:
    async with Reader(tmp_path) as reader:
        with pytest.raises(AssertionError):
            await reader.follow(document)


async def test_ports_are_replaced(tmp_path: Path) -> None:
    async with Reader(tmp_path) as reader:
        await reader.follow(shell("echo http://localhost:8080/", reader.page[-7:]))


def test_a_block_is_found() -> None:
    found = blocks("a\n```sh\nb\n```\nc\n```\nd\n```\n")
    assert [(one.language, one.text, one.before) for one in found] == [
        ("sh", "b\n", "a\n"),
        ("", "d\n", "\nc\n"),
    ]
