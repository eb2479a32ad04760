"""`dealer key`: a key is printed once, stored as a digest, listed, journalled and revoked."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from .conftest import Ask, Played


@pytest.fixture
def url(played: Played, tmp_path: Path) -> str:
    for file in played.folder.glob("dealer.db*"):
        shutil.copy(file, tmp_path)
    return f"sqlite:///{tmp_path / 'dealer.db'}"


@pytest.mark.slow
def test_a_key_is_alone_on_standard_output(ask: Ask, url: str, tmp_path: Path) -> None:
    added = ask("key", "add", "shop", "--may", "read, open", "--database", url)
    assert added.code == 0
    (key,) = added.lines
    assert key.startswith("dk_")
    assert len(key) == 46
    assert "not shown again" in added.err
    assert key not in added.err
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("dealer.db*"))
    assert key.encode() not in stored
    assert sha256(key.encode()).digest() in stored


def test_keys_are_listed_without_their_digests(ask: Ask, url: str) -> None:
    assert "no keys" in ask("key", "list", "--database", url).out
    for name in ("shop", "support"):
        ask("key", "add", name, "--may", "close,open,open", "--database", url)
    ask("key", "revoke", "shop", "--why", "old", "--database", url)
    listed = ask("key", "list", "--database", url).lines
    assert [line.split()[:2] for line in listed] == [
        ["shop", "open,close"],
        ["support", "open,close"],
    ]
    assert ["revoked" in line for line in listed] == [True, False]
    shown = [json.loads(line) for line in ask("key", "list", "--json", "--database", url).lines]
    assert [set(one) for one in shown] == [{"id", "name", "rights", "created_at", "revoked_at"}] * 2
    assert shown[0]["rights"] == ["open", "close"]


def test_the_journal_has_who_and_why(ask: Ask, url: str) -> None:
    options = ("--database", url, "--operator", "ann")
    ask("key", "add", "shop", "--may", "open", "--why", "a shop", *options)
    assert ask("key", "revoke", "shop", "--why", "gone", *options).out.endswith("is revoked.\n")
    again = ask("key", "revoke", "shop", "--why", "gone", *options)
    assert again.out == "The key shop was already revoked.\n"
    lines = ask("journal", "--json", "--database", url).lines
    entries = [json.loads(line) for line in lines]
    found = [(one["who"], one["what"], one["target"], one["why"]) for one in entries[:2]]
    assert sorted(found) == [
        ("ann", "add-service-key", "shop", "a shop"),
        ("ann", "revoke-service-key", "shop", "gone"),
    ]
    assert {"rights": ["open"]} in [one["details"] for one in entries[:2]]
    assert "dk_" not in "".join(lines)


@pytest.mark.parametrize(
    ("name", "may", "says"),
    [
        ("shop", "open,write", "There is no right 'write'; the rights are open, seat, read, close"),
        ("shop", "", "A key has a right at least"),
        ("My Shop", "open", "A key's name has 1 to 64 characters"),
        ("", "open", "A key's name"),
        ("x" * 65, "open", "A key's name"),
    ],
)
def test_a_wrong_name_or_right_is_refused(
    ask: Ask, url: str, name: str, may: str, says: str
) -> None:
    refused = ask("key", "add", name, "--may", may, "--database", url)
    assert refused.code == 2
    assert says in " ".join(refused.err.replace("│", " ").split())
    assert refused.out == ""


def test_a_name_is_used_once(ask: Ask, url: str) -> None:
    ask("key", "add", "shop", "--may", "open", "--database", url)
    ask("key", "revoke", "shop", "--why", "gone", "--database", url)
    refused = ask("key", "add", "shop", "--may", "open", "--database", url)
    assert refused.code == 1
    assert "There is a key shop already" in refused.err


def test_an_unknown_key_is_not_revoked(ask: Ask, url: str) -> None:
    refused = ask("key", "revoke", "shop", "--why", "x", "--database", url)
    assert refused.code == 1
    assert "no key 'shop'" in refused.err


def test_no_database_is_created(ask: Ask, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    assert ask("key", "add", "shop", "--may", "open", "--database", url).code == 1
    assert ask("key", "list", "--database", url).code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["add", "list", "revoke"])
def test_each_command_has_examples(ask: Ask, command: str) -> None:
    answer = ask("key", command, "--help")
    assert any(line.split()[:3] == ["dealer", "key", command] for line in answer.lines)
