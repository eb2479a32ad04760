"""The store is complete after a restart and readable only by its owner."""

from __future__ import annotations

import json
import stat

import pytest

from dealer.client.storage import SavedHead, Store
from dealer.errors import ConfigurationError

TABLE = "0123456789abcdef0123456789abcdef"
KEY = (1, 0, 2, 7)
HEAD = SavedHead(3, "a note\n", (b"\x01" * 32, b"\x02" * 32))


@pytest.fixture
def stored(tmp_path):
    stored = Store(tmp_path / "ada").table(TABLE)
    stored.update(token="seat.2.7.mac", seat=2)
    stored.save_nonce(KEY, b"\x05" * 32)
    stored.save_nonce((1, 1, 2, 7), b"\x06" * 32)
    stored.mark_revealed(KEY, root=b"\x07" * 32)
    stored.save_head(HEAD)
    return stored


def reopened(stored):
    return Store(stored.path.parent).table(TABLE)


def test_everything_is_read_back(stored):
    stored.update(token=None)
    file = stored.save_evidence({"sentence": "two histories"})
    fresh = reopened(stored)
    assert fresh.record == {"token": None, "seat": 2}
    assert fresh.nonces[KEY].value == b"\x05" * 32
    assert fresh.nonces[KEY].revealed_under == b"\x07" * 32
    assert not fresh.nonces[1, 1, 2, 7].revealed_under
    assert fresh.heads == [HEAD]
    assert fresh.evidence == [{"sentence": "two histories"}]
    assert file == str(stored.path / "evidence-1.json")
    assert Store(stored.path.parent).tables() == [TABLE]


@pytest.mark.parametrize("facts", [{}, {"seat": 2}, {"seat": 9, "since": None}, {"since": "7"}])
def test_a_record_without_since_gets_it_from_the_token(stored, facts):
    (stored.path / "seat.json").write_text(json.dumps({"token": "seat.2.7.mac"} | facts))
    fresh = reopened(stored)
    assert (fresh.record["seat"], fresh.record["since"]) == (2, 7)


@pytest.mark.parametrize("token", ["other", "seat.2", "seat.0.7.mac", "seat.2.07.mac"])
def test_a_record_with_neither_is_refused(stored, token):
    (stored.path / "seat.json").write_text(json.dumps({"token": token, "seat": 2}))
    with pytest.raises(ConfigurationError, match="no `since`, the version at which the seat"):
        reopened(stored)


def test_only_the_player_reads_it(stored):
    assert stat.S_IMODE(stored.path.stat().st_mode) == 0o700
    for file in stored.path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["nonces.jsonl", "checkpoints.jsonl"])
def test_a_line_truncated_by_a_crash_is_ignored(stored, name):
    file = stored.path / name
    file.write_text(file.read_text() + '{"nonce": "aa')
    fresh = reopened(stored)
    assert fresh.heads == [HEAD]
    fresh.save_nonce((2, 0, 2, 7), b"\x08" * 32)
    fresh.save_head(HEAD._replace(size=4))
    third = reopened(stored)
    assert third.nonces[2, 0, 2, 7].value == b"\x08" * 32
    assert third.heads[-1].size == 4


@pytest.mark.parametrize("name", ["seat.json", "nonces.jsonl", "checkpoints.jsonl"])
def test_damaged_files_are_reported(stored, name):
    (stored.path / name).write_text("]\n")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        reopened(stored)


def test_in_memory_nothing_outlives_the_store():
    store = Store()
    store.table(TABLE).update(seat=1)
    assert store.table(TABLE).record == {"seat": 1}
    assert store.tables() == [TABLE]
    assert Store().tables() == []


def test_a_full_disk_is_reported(stored):
    (stored.path / "nonces.jsonl").unlink()
    (stored.path / "nonces.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        stored.save_nonce((3, 0, 2, 7), bytes(32))


@pytest.mark.parametrize("value", [b"\x05" * 32, b"\x06" * 32])
def test_no_nonce_is_stored_twice(stored, value):
    """A nonce is refused for any shuffle, before and after a restart."""
    for store in (stored, reopened(stored)):
        for key in (KEY, (2, 0, 2, 7)):
            with pytest.raises(ConfigurationError, match="twice"):
                store.save_nonce(key, value)
    assert (2, 0, 2, 7) not in reopened(stored).nonces


def test_a_replaced_nonce_is_not_forgotten(stored):
    stored.save_nonce(KEY, b"\x08" * 32)
    with pytest.raises(ConfigurationError, match="twice"):
        reopened(stored).save_nonce((2, 0, 2, 7), b"\x05" * 32)
