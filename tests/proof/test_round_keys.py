"""Commitments, salts and keys against the vectors and against a library's HKDF and HMAC."""

from __future__ import annotations

import hmac
from hashlib import sha256
from math import factorial
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dealer.proof.canonical import encode
from dealer.proof.concatenation import T, be32, be64, lp
from dealer.proof.round_keys import RoundKeys, player_digest, secret_length, slot_commitment
from tests.proof.log_builder import ids, some_bytes, vectors

TABLE = some_bytes("table", length=16)


@pytest.mark.parametrize("vector", vectors("secret"), ids=ids)
def test_secret_vectors(vector: dict[str, Any]) -> None:
    given, wanted = vector["in"], vector["out"]
    secret = bytes.fromhex(given["secret"])
    keys = RoundKeys(table=bytes.fromhex(given["table"]), round=given["round"], secret=secret)
    assert secret_length(given["n"]) == wanted["length"] == len(secret)
    assert keys.commitment.hex() == wanted["commitment"]
    assert keys.salt_key.hex() == wanted["salt_key"]
    assert keys.seal_key.hex() == wanted["seal_key"]


@pytest.mark.parametrize("vector", vectors("player"), ids=ids)
def test_player_vectors(vector: dict[str, Any]) -> None:
    given = vector["in"]
    digest = player_digest(
        table=bytes.fromhex(given["table"]),
        round=given["round"],
        k=given["k"],
        seat=given["seat"],
        nonce=bytes.fromhex(given["nonce"]),
    )
    assert digest.hex() == vector["out"]["digest"]


@pytest.mark.parametrize("vector", vectors("slot"), ids=ids)
def test_slot_vectors(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given, wanted = vector["in"], vector["out"]
    table, round_, slot, card = (
        bytes.fromhex(given["table"]),
        given["round"],
        given["slot"],
        given["card"],
    )
    salt_key = bytes.fromhex(given["salt_key"])
    monkeypatch.setattr("dealer.proof.round_keys._hkdf", lambda **_: salt_key)
    keys = RoundKeys(table=table, round=round_, secret=b"")
    salt = keys.slot_salt(slot)
    assert salt.hex() == wanted["salt"]
    assert keys.slot_commitment(slot, card).hex() == wanted["commitment"]
    opened = slot_commitment(table=table, round=round_, slot=slot, salt=salt, card=card)
    assert opened.hex() == wanted["commitment"]


@pytest.mark.parametrize("vector", vectors("event"), ids=ids)
def test_event_vectors(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given, wanted = vector["in"], vector["out"]
    salt_key = bytes.fromhex(given["salt_key"])
    monkeypatch.setattr("dealer.proof.round_keys._hkdf", lambda **_: salt_key)
    keys = RoundKeys(table=bytes.fromhex(given["table"]), round=1, secret=b"")
    part = encode(given["hidden"]).decode()
    assert part == wanted["jcs"]
    assert keys.event_commitment(given["version"], part).hex() == wanted["commit"]


@pytest.mark.parametrize(("n", "length"), [(52, 64), (54, 64), (104, 96), (416, 416), (0, 32)])
def test_length_of_the_secret(n: int, length: int) -> None:
    assert secret_length(n) == length


@pytest.mark.parametrize("n", range(1, 1025, 31))
def test_the_secret_has_128_bits_more_than_the_orders(n: int) -> None:
    bits, length = factorial(n).bit_length() + 128, secret_length(n)
    assert length % 32 == 0
    assert 8 * (length - 32) < bits <= 8 * length


@pytest.mark.parametrize("n", [1, 52, 416, 1024])
@pytest.mark.parametrize("round_", [1, 2**32 - 1])
def test_keys_are_hkdf(n: int, round_: int) -> None:
    secret = some_bytes("S", length=secret_length(n))
    keys = RoundKeys(table=TABLE, round=round_, secret=secret)
    for label, key in (("salt", keys.salt_key), ("seal", keys.seal_key)):
        info = T(label) + be32(round_)
        assert key == HKDF(SHA512(), length=32, salt=TABLE, info=info).derive(secret)


def test_prepared_states_agree_with_plain_hmac() -> None:
    keys = RoundKeys(table=TABLE, round=7, secret=some_bytes("S", length=64))
    for number in (0, 1, 51, 2**32 - 1):
        salt = hmac.digest(keys.salt_key, T("card") + be32(number), "sha256")
        parts = lp(TABLE, be32(7), be32(number), salt, b"As.01")
        assert keys.slot_salt(number) == salt
        assert keys.slot_commitment(number, "As.01") == sha256(T("card") + parts).digest()
        salt = hmac.digest(keys.salt_key, T("event") + be64(number), "sha256")
        parts = lp(TABLE, be64(number), salt, b'{"j":7}')
        assert keys.event_commitment(number, '{"j":7}') == sha256(T("event") + parts).digest()


def test_bulk_and_single_commitments_agree() -> None:
    keys = RoundKeys(table=TABLE, round=1, secret=some_bytes("S", length=64))
    cards = ["As", "Kh", "X1"]
    assert keys.slot_commitments(9, cards) == [
        keys.slot_commitment(9 + place, card) for place, card in enumerate(cards)
    ]
    hidden = ['{"j":1}', '{"card":"As"}']
    assert keys.event_commitments(2**40, hidden) == [
        keys.event_commitment(2**40 + place, part) for place, part in enumerate(hidden)
    ]


def test_commitments_depend_on_every_input() -> None:
    base = {"table": TABLE, "round": 1, "k": 0, "seat": 2, "nonce": some_bytes("r")}
    others: list[dict[str, Any]] = [
        {"table": some_bytes("other", length=16)},
        {"round": 2},
        {"k": 1},
        {"seat": 10},
        {"nonce": some_bytes("r2")},
    ]
    digests = {player_digest(**{**base, **other}) for other in [{}, *others]}
    assert len(digests) == 1 + len(others)


def test_different_lists_of_parts_have_different_encodings() -> None:
    assert lp(b"a", b"bc") != lp(b"ab", b"c")
    assert lp() != lp(b"")
    assert T("card") == b"dealer/v1/card\x00"
