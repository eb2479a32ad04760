"""The store is complete after a restart and readable only by its owner."""

from __future__ import annotations

import stat

import pytest

from dealer.client.store import SavedHead, Store
from dealer.errors import ConfigurationError

TABLE = "0123456789abcdef0123456789abcdef"
SITTING = (1, 0, 2, 7)
HEAD = SavedHead(3, "a note\n", (b"\x01" * 32, b"\x02" * 32))


@pytest.fixture
def kept(tmp_path):
    kept = Store(tmp_path / "ada").table(TABLE)
    kept.learn(token="seat.2", seat=2)
    kept.keep_nonce(SITTING, b"\x05" * 32)
    kept.keep_nonce((1, 1, 2, 7), b"\x06" * 32)
    kept.mark_revealed(SITTING, root=b"\x07" * 32)
    kept.keep_head(HEAD)
    return kept


def again(kept):
    return Store(kept.path.parent).table(TABLE)


def test_everything_is_read_back(kept):
    kept.learn(token=None)
    file = kept.keep_evidence({"sentence": "two histories"})
    fresh = again(kept)
    assert fresh.facts == {"token": None, "seat": 2}
    assert fresh.nonces[SITTING].value == b"\x05" * 32
    assert fresh.nonces[SITTING].revealed_under == b"\x07" * 32
    assert not fresh.nonces[1, 1, 2, 7].revealed_under
    assert fresh.heads == [HEAD]
    assert fresh.evidence == [{"sentence": "two histories"}]
    assert file == str(kept.path / "evidence-1.json")
    assert Store(kept.path.parent).tables() == [TABLE]


def test_only_the_player_reads_it(kept):
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o700
    for file in kept.path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["nonces.jsonl", "checkpoints.jsonl"])
def test_a_line_truncated_by_a_crash_is_ignored(kept, name):
    file = kept.path / name
    file.write_text(file.read_text() + '{"nonce": "aa')
    fresh = again(kept)
    assert fresh.heads == [HEAD]
    fresh.keep_nonce((2, 0, 2, 7), b"\x08" * 32)
    fresh.keep_head(HEAD._replace(size=4))
    third = again(kept)
    assert third.nonces[2, 0, 2, 7].value == b"\x08" * 32
    assert third.heads[-1].size == 4


@pytest.mark.parametrize("name", ["seat.json", "nonces.jsonl", "checkpoints.jsonl"])
def test_damaged_files_are_reported(kept, name):
    (kept.path / name).write_text("]\n")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        again(kept)


def test_in_memory_nothing_outlives_the_store():
    store = Store()
    store.table(TABLE).learn(seat=1)
    assert store.table(TABLE).facts == {"seat": 1}
    assert store.tables() == [TABLE]
    assert Store().tables() == []


def test_a_full_disk_is_reported(kept):
    (kept.path / "nonces.jsonl").unlink()
    (kept.path / "nonces.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        kept.keep_nonce((3, 0, 2, 7), bytes(32))


@pytest.mark.parametrize("value", [b"\x05" * 32, b"\x06" * 32])
def test_no_nonce_is_stored_twice(kept, value):
    """For any shuffle, before or after a restart."""
    for store in (kept, again(kept)):
        for sitting in (SITTING, (2, 0, 2, 7)):
            with pytest.raises(ConfigurationError, match="twice"):
                store.keep_nonce(sitting, value)
    assert (2, 0, 2, 7) not in again(kept).nonces


def test_a_replaced_nonce_is_not_forgotten(kept):
    kept.keep_nonce(SITTING, b"\x08" * 32)
    with pytest.raises(ConfigurationError, match="twice"):
        again(kept).keep_nonce((2, 0, 2, 7), b"\x05" * 32)
