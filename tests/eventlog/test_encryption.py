"""Encryption at rest: published vectors, and decryption only at the place of the encryption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import DatabaseDamaged
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys, RoundCipher
from tests.eventlog.requests import A, B

VECTORS = [
    vector
    for vector in json.loads((Path(__file__).parents[1] / "vectors/fairness.json").read_text())
    if vector["kind"] == "rest"
]
KEY, N = bytes(range(32)), bytes(NONCE_BYTES)


def _jcs(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_hidden_parts_are_stored_as_published(vector: dict[str, Any]) -> None:
    inputs = vector["in"]
    key, nonce = bytes.fromhex(inputs["key"]), bytes.fromhex(inputs["nonce"])
    cipher = RoundCipher(table=bytes.fromhex(inputs["table"]), seal_key=key)
    hidden, stored = _jcs(inputs["hidden"]), bytes.fromhex(vector["out"]["stored"])
    assert cipher.encrypt(inputs["version"], hidden, nonce=nonce) == stored
    assert cipher.decrypt(inputs["version"], stored) == hidden


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 2


def test_many_parts_are_encrypted_as_each_part_alone() -> None:
    cipher = RoundCipher(table=A, seal_key=KEY)
    parts = [_jcs({"j": j}) for j in range(51)]
    nonces = bytes(n % 256 for n in range(51 * NONCE_BYTES))
    alone = [
        cipher.encrypt(7 + n, part, nonce=nonces[n * NONCE_BYTES : (n + 1) * NONCE_BYTES])
        for n, part in enumerate(parts)
    ]
    assert cipher.encrypt_many(range(7, 58), parts, nonces=nonces) == alone
    with pytest.raises(ValueError, match="nonces"):
        cipher.encrypt_many(range(7, 58), parts, nonces=nonces[1:])


def test_the_length_of_an_encrypted_part_does_not_depend_on_its_content() -> None:
    cipher = RoundCipher(table=A, seal_key=KEY)
    lengths = {len(cipher.encrypt(1, _jcs({"j": j}), nonce=N)) for j in (0, 10, 1023)}
    assert lengths == {NONCE_BYTES + 32 + 16}


@pytest.mark.parametrize("damage", ["version", "table", "key", "bit", "cut", "empty"])
def test_a_part_is_decrypted_only_unchanged_and_in_its_row(damage: str) -> None:
    stored = RoundCipher(table=A, seal_key=KEY).encrypt(5, b'{"j":1}', nonce=N)
    cipher = RoundCipher(
        table=B if damage == "table" else A, seal_key=KEY[::-1] if damage == "key" else KEY
    )
    if damage == "bit":
        stored = stored[:-1] + bytes([stored[-1] ^ 1])
    stored = {"cut": stored[:20], "empty": b""}.get(damage, stored)
    with pytest.raises(DatabaseDamaged, match="backup"):
        cipher.decrypt(6 if damage == "version" else 5, stored)


def test_a_secret_is_unwrapped_only_for_its_table_and_round() -> None:
    keys = HouseKeys(KEY)
    stored = keys.wrap(b"S" * 64, table=A, round=2, nonce=N)
    assert keys.unwrap(stored, table=A, round=2) == b"S" * 64
    assert b"S" * 8 not in stored
    for table, round, key in ((B, 2, KEY), (A, 3, KEY), (A, 2, KEY[::-1])):
        with pytest.raises(DatabaseDamaged):
            HouseKeys(key).unwrap(stored, table=table, round=round)


@pytest.mark.parametrize("other", ["table", "version", "format", "code", "key", "bit", "cut"])
def test_a_savepoint_is_opened_only_unchanged_and_in_its_row(other: str) -> None:
    about: dict[str, Any] = {"table": A, "version": 7, "format": 1, "code": b"c" * 8}
    stored = HouseKeys(KEY).seal_savepoint(b"As Ks", **about, nonce=N)
    assert b"As" not in stored
    assert HouseKeys(KEY).open_savepoint(stored, **about) == b"As Ks"
    about |= {
        name: value
        for name, value in {"table": B, "version": 8, "format": 2, "code": b"d" * 8}.items()
        if name == other
    }
    if other == "bit":
        stored = stored[:-1] + bytes([stored[-1] ^ 1])
    stored = stored[:10] if other == "cut" else stored
    with pytest.raises(DatabaseDamaged, match="savepoint"):
        HouseKeys(KEY[::-1] if other == "key" else KEY).open_savepoint(stored, **about)


def test_every_use_has_its_own_key() -> None:
    one, other = HouseKeys(KEY), HouseKeys(KEY[::-1])
    digest = one.command_digest(b"draw As")
    derived = [one.signing_seed, one.token_key, one.check, digest]
    assert len({*derived, KEY}) == 5
    assert [len(key) for key in derived] == [32] * 4
    assert digest == HouseKeys(KEY).command_digest(b"draw As")
    assert digest != one.command_digest(b"draw Ks")
    assert digest != other.command_digest(b"draw As")


def test_the_keys_are_derived_as_for_older_databases() -> None:
    # HKDF-SHA-512 without the library, RFC 5869: no salt is 64 zero bytes.
    import hmac

    extract = hmac.digest(bytes(64), KEY, "sha512")
    for use, key in (("signing", HouseKeys(KEY).signing_seed), ("token", HouseKeys(KEY).token_key)):
        info = b"dealer/v1/house-" + use.encode() + b"\x00"
        assert hmac.digest(extract, info + b"\x01", "sha512")[:32] == key
