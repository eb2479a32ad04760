"""Signed checkpoints: valid ones verify, and variations of them do not."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from dealer.errors import NoteFault
from dealer.proof.checkpoint import (
    Cosigner,
    Signer,
    attach_once,
    cosigners,
    is_origin,
    open_note,
    read_checkpoint,
)
from dealer.proof.note import COSIGNATURE, ED25519, Verifier
from tests.proof.log_builder import HOUSE_SEED, cosignature, ids, some_bytes, vectors

TABLE = "ab" * 16
ORIGIN = f"cards.example/t/{TABLE}"
ROOT = some_bytes("root")
HOUSE = Signer(HOUSE_SEED)
ADA = Cosigner(some_bytes("Ada"))
BEA = Cosigner(some_bytes("Bea"))
NOTE = HOUSE.sign(origin=ORIGIN, size=8, root=ROOT)
COSIGNED = attach_once(NOTE, ADA.cosign(NOTE, time=1_790_000_000), key=ADA.public_key)
VKEY = HOUSE.vkey(ORIGIN)


def signed_by(note: str, vkey: str) -> bool:
    """Whether `note` is a checkpoint that the key `vkey` signed."""
    try:
        checkpoint = read_checkpoint(note)
        return Verifier.read(vkey).signed(checkpoint.text, checkpoint.signatures)
    except NoteFault:
        return False


@pytest.mark.parametrize("vector", vectors("checkpoint"), ids=ids)
def test_checkpoint_vectors(vector: dict[str, Any]) -> None:
    given, wanted = vector["in"], vector["out"]
    house = Signer(bytes.fromhex(given["house_seed"]))
    player = Cosigner(bytes.fromhex(given["player_seed"]))
    root = bytes.fromhex(given["root"])
    note = house.sign(origin=given["origin"], size=given["size"], root=root)
    note = attach_once(note, player.cosign(note, time=given["time"]), key=player.public_key)
    assert note == wanted["note"]
    assert house.vkey(given["origin"]) == wanted["vkey"]
    assert player.vkey == wanted["cosigner"]


@pytest.mark.parametrize("vector", vectors("note"), ids=ids)
def test_note_vectors(vector: dict[str, Any]) -> None:
    given = vector["in"]
    assert [signed_by(given["note"], vkey) for vkey in given["vkeys"]] == vector["out"]["ok"]


def test_a_valid_note_verifies() -> None:
    assert signed_by(NOTE, VKEY)
    assert signed_by(COSIGNED, VKEY)
    assert signed_by(COSIGNED, ADA.vkey)
    assert not signed_by(COSIGNED, BEA.vkey)
    assert not signed_by(NOTE, ADA.vkey)
    assert open_note(COSIGNED, key=HOUSE.public_key, table=TABLE) == (8, ROOT)
    assert cosigners(read_checkpoint(COSIGNED), keys=[BEA.public_key, ADA.public_key]) == [
        ADA.public_key
    ]


def test_a_note_of_another_table_or_key_is_rejected() -> None:
    with pytest.raises(NoteFault, match="another table"):
        open_note(NOTE, key=HOUSE.public_key, table="cd" * 16)
    with pytest.raises(NoteFault, match="did not sign"):
        open_note(NOTE, key=ADA.public_key, table=TABLE)
    other = Signer(some_bytes("other")).sign(origin=ORIGIN, size=8, root=ROOT)
    with pytest.raises(NoteFault, match="did not sign"):
        open_note(other, key=HOUSE.public_key, table=TABLE)


def test_a_change_of_any_byte_is_rejected() -> None:
    """Except in the names and key ids of unknown signatures, which are ignored."""
    raw = COSIGNED.encode()
    second = COSIGNED.index("\u2014 player/")
    for at in range(len(raw)):
        for flip in (1, 32, 128):
            changed = raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :]
            try:
                note = changed.decode()
            except UnicodeDecodeError:
                continue
            mine, hers = signed_by(note, VKEY), signed_by(note, ADA.vkey)
            assert not (mine and hers)
            if mine:
                assert at >= len(COSIGNED[:second].encode())
            try:
                found = cosigners(read_checkpoint(note), keys=[ADA.public_key])
            except NoteFault:
                continue
            assert not (mine and found)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: n[:-1],
        lambda n: n + "\n",
        lambda n: "\n" + n,
        lambda n: n.replace("\n\n", "\n"),
        lambda n: n.replace("\n\n", "\n\n\n"),
        lambda n: n.replace("\n", "\r\n"),
        lambda n: n.replace("\n8\n", "\n08\n"),
        lambda n: n.replace("\n8\n", "\n+8\n"),
        lambda n: n.replace("\n8\n", "\n 8\n"),
        lambda n: n.replace("\n8\n", "\n\u0668\n"),
        lambda n: n.replace("\n8\n", "\n\n"),
        lambda n: n.replace("\n8\n", f"\n{2**53}\n"),
        lambda n: n.replace("\u2014 ", "-- "),
        lambda n: n.replace("\u2014 ", "\u2014  "),
        lambda n: n.replace("\u2014 ", "\u2014\u00a0"),
        lambda n: n.replace("=\n", "\n"),
        lambda n: n.replace("=\n\n", "==\n\n"),
        lambda n: n + n.splitlines()[-1] + "\n",
        lambda n: n + "\u2014 other\n",
        lambda n: n + "\u2014 other AAAA\n",
        lambda n: n + "\u2014 other AAAAAAAA=\n",
        lambda n: n + "\u2014 oth\u2003er AAAAAAAA\n",
        lambda n: n + "\u2014 o+her AAAAAAAA\n",
        lambda n: n + "\u2014 other AAAAAAAA \n",
        lambda n: n + "\u2014 other AAAA_AAA\n",
        lambda n: n + "\u2014 other AAAA\tAAAA\n",
        lambda n: n + "\u2014 other \ud800\n",
    ],
)
def test_malformed_notes_are_rejected(change: Any) -> None:
    assert change(NOTE) != NOTE
    assert not signed_by(change(NOTE), VKEY)


def test_base64_has_one_form() -> None:
    """The last digits of 32 and 68 bytes have unused bits, which decoders ignore."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for end in ("=\n\n", "=\n"):
        at = NOTE.rindex(end) - 1
        spare = NOTE[:at] + digits[digits.index(NOTE[at]) + 1] + NOTE[at + 1 :]
        blob = NOTE[: at + 2].split()[-1]
        assert b64decode(spare[: at + 2].split()[-1]) == b64decode(blob)
        assert not signed_by(spare, VKEY)


@pytest.mark.parametrize("root", [ROOT[:31], ROOT + b"x", b"x"])
def test_a_root_has_32_bytes(root: bytes) -> None:
    with pytest.raises(NoteFault, match="32 bytes"):
        read_checkpoint(HOUSE.sign(origin=ORIGIN, size=8, root=root))


def test_a_note_with_a_control_character_is_malformed() -> None:
    for letter in "\t\r\x00\x1f":
        with pytest.raises(NoteFault, match="control"):
            read_checkpoint(HOUSE.sign(origin=f"cards{letter}example", size=8, root=ROOT))


@pytest.mark.parametrize(
    "verifier",
    [
        Verifier(ORIGIN, 2, HOUSE.public_key),
        Verifier(ORIGIN, ED25519, b"short"),
        Verifier(ORIGIN, ED25519, HOUSE.public_key + b"x"),
    ],
)
def test_keys_of_other_types_and_lengths(verifier: Verifier) -> None:
    with pytest.raises(NoteFault, match="Ed25519"):
        Verifier.read(verifier.vkey)


def test_extension_lines_are_rejected() -> None:
    text = f"{ORIGIN}\n8\n{b64encode(ROOT).decode()}\nmore\n"
    with pytest.raises(NoteFault, match="an origin, a size and a root"):
        read_checkpoint(f"{text}\n{NOTE.splitlines()[-1]}\n")


def test_unknown_signatures_are_ignored() -> None:
    for line in ("\u2014 other AAAAAAAA\n", f"\u2014 {ORIGIN} AAAAAAAA\n"):
        assert signed_by(NOTE + line, VKEY)
        assert signed_by(NOTE.replace("\n\n", f"\n\n{line}"), VKEY)


def test_a_note_with_an_invalid_line_of_a_known_key_is_rejected() -> None:
    for blob in (b"x", bytes(72), bytes(64), bytes(73)):
        with pytest.raises(NoteFault):
            cosigners(read_checkpoint(cosignature(NOTE, ADA, blob)), keys=[ADA.public_key])
    again = COSIGNED + ADA.cosign(NOTE, time=1)
    with pytest.raises(NoteFault, match="two signature lines"):
        cosigners(read_checkpoint(again), keys=[ADA.public_key])
    doubled = NOTE + NOTE.splitlines()[-1] + "\n"
    with pytest.raises(NoteFault, match="two signature lines"):
        open_note(doubled, key=HOUSE.public_key, table=TABLE)


def test_only_a_valid_cosignature_is_attached() -> None:
    good = ADA.cosign(NOTE, time=5)
    assert attach_once(NOTE, good.removesuffix("\n"), key=ADA.public_key) == NOTE + good
    other = HOUSE.sign(origin=ORIGIN, size=9, root=ROOT)
    for line, key in (
        (good, BEA.public_key),
        (ADA.cosign(other, time=5), ADA.public_key),
        (good + good, ADA.public_key),
        ("", ADA.public_key),
        (good.replace("player/", "flayer/"), ADA.public_key),
        (NOTE.splitlines()[-1], ADA.public_key),
    ):
        with pytest.raises(NoteFault):
            attach_once(NOTE, line, key=key)
    assert attach_once(COSIGNED, ADA.cosign(NOTE, time=6), key=ADA.public_key) == COSIGNED
    both = attach_once(COSIGNED, BEA.cosign(COSIGNED, time=2**63 - 1), key=BEA.public_key)
    assert signed_by(both, ADA.vkey)
    assert signed_by(both, BEA.vkey)


@pytest.mark.parametrize("time", [-1, 2**63])
def test_an_invalid_time_of_a_cosignature_is_rejected(time: int) -> None:
    with pytest.raises(NoteFault, match="time"):
        ADA.cosign(NOTE, time=time)


def test_a_time_beyond_the_last_is_refused() -> None:
    with pytest.raises(NoteFault, match="time"):
        cosigners(read_checkpoint(cosignature(NOTE, ADA, b"\xff" * 72)), keys=[ADA.public_key])


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "a+b",
        VKEY + "=",
        VKEY[:-1],
        VKEY.replace("+", "-", 1),
        VKEY.upper(),
        f" {VKEY}",
        f"{ORIGIN}+00000000+{VKEY.rpartition('+')[2]}",
        f"a b+{VKEY.partition('+')[2]}",
    ],
)
def test_malformed_verifier_keys_are_rejected(vkey: str) -> None:
    assert not signed_by(NOTE, vkey)


def test_a_key_of_another_type_is_another_key() -> None:
    assert not signed_by(NOTE, Verifier(ORIGIN, COSIGNATURE, HOUSE.public_key).vkey)
    assert Verifier.read(VKEY) == Verifier(ORIGIN, ED25519, HOUSE.public_key)


def test_bytes_that_are_not_a_key_verify_no_signature() -> None:
    no_key = Verifier(ORIGIN, ED25519, b"\xff" * 32)
    forged = f"{read_checkpoint(NOTE).text}\n\u2014 {ORIGIN} " + (
        b64encode(no_key.key_id + bytes(64)).decode() + "\n"
    )
    assert not signed_by(forged, no_key.vkey)


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        (ORIGIN, True),
        (f"h\u00f6use:8000/x/t/{TABLE}", True),
        (f"/t/{TABLE}", False),
        (f"cards.example/{TABLE}", False),
        (f"cards.example/t/{TABLE.upper()}", False),
        (f"cards.example/t/{TABLE}0", False),
        (f"cards.example/t/{TABLE}\n", False),
        (f"cards example/t/{TABLE}", False),
        (f"cards\u00a0example/t/{TABLE}", False),
        (f"cards\u3000example/t/{TABLE}", False),
        (f"cards+example/t/{TABLE}", False),
        (f"cards\u200bexample/t/{TABLE}", True),
    ],
)
def test_an_origin_is_validated(text: str, ok: bool) -> None:
    assert is_origin(text) is ok
