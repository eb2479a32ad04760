"""Both verifiers are stricter than common parsers: JSON, UTF-8, base64, Ed25519."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dealer.errors import NotCanonical
from dealer.proof import bundle, canonical
from dealer.proof.note import verifies
from tests.proof.log_builder import HOUSE_SEED, LogBuilder, some_bytes
from tests.web import mutated_notes
from tests.web.js_verifier import Bundle, Line, ask, compare, question

pytestmark = pytest.mark.slow

DEPTHS = [
    opening * n + inside + closing * n
    for n in (255, 256, 257)
    for opening, inside, closing in (("[", "", "]"), ('{"a":', "1", "}"))
]
TEXTS: list[Line] = [
    "1.0",
    "1e2",
    "1E2",
    "-0",
    "0",
    "-1",
    "01",
    "+1",
    "0x1",
    "1_0",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9007199254740990.9",
    "1" * 5000,
    "NaN",
    "Infinity",
    "-Infinity",
    "true",
    "false",
    "null",
    "True",
    "undefined",
    "",
    " ",
    "7 ",
    " 7",
    "7\n",
    "\ufeff7",
    '"a"',
    "'a'",
    '"\\u0061"',
    '"\\/"',
    '"/"',
    '"\\\\"',
    '"\\""',
    '"\\b"',
    '"\\n"',
    '"\n"',
    '"\t"',
    '"\x7f"',
    '"\\u007f"',
    '"\\ud800"',
    '"\\ud83c\\udca1"',
    '"🂡"',
    '"\ud800"',
    '"\u2028"',
    '"\uffff"',
    '"\u0080"',
    '"\ufeff"',
    '"é"',
    '"e\u0301"',
    b'"\xc3\xa9"',
    b'"\xed\xa0\x80"',
    b'"\xc0\xaf"',
    b'"\xf4\x90\x80\x80"',
    b"\xff",
    b'\xef\xbb\xbf"a"',
    "{}",
    "[]",
    "[1,]",
    "[,1]",
    "[1 ,2]",
    '{"a":1,}',
    '{"a":1,"a":1}',
    '{"a":1,"a":2}',
    '{"b":1,"a":1}',
    '{"a":1,"b":1}',
    '{"a":1,"a_":1,"aa":1}',
    '{"a_":1,"aa":1}',
    '{"a1":1,"a_":1,"aa":1}',
    '{"aa":1,"a_":1}',
    '{"":1}',
    '{"1":1}',
    '{"_a":1}',
    '{"A":1}',
    '{"aB":1}',
    '{"a-":1}',
    '{"a\\n":1}',
    '{"é":1}',
    '{"__proto__":1}',
    '{"__proto__":{"a":1}}',
    '{"constructor":1}',
    '{"to_string":1}',
    "//",
    '{"\\u0061":1}',
    "{a:1}",
    '{"a":undefined}',
    '{"checkpoint":"\\n"}',
    '{"checkpoint":"\\r"}',
    '{"checkpoint":"\\u000a"}',
    '{"checkpoint":["\\n"]}',
    '{"a":1,"checkpoint":"\\n"}',
    *DEPTHS,
]


def accepted(line: Line) -> bool:
    try:
        raw = line.encode() if isinstance(line, str) else line
        canonical.decode(raw, newlines=raw.startswith(b'{"checkpoint":'))
    except (NotCanonical, UnicodeEncodeError):
        return False
    return True


def agree(lines: list[Line]) -> None:
    sent = question(Bundle("", lines))["lines"]
    answers = ask({"do": "canonical", "line": line} for line in sent)
    for line, answer in zip(lines, answers, strict=True):
        assert answer["ok"] == accepted(line), line
        assert answer.get("name") in (None, "RuleViolation"), line


def test_both_verifiers_accept_only_canonical_texts() -> None:
    assert sum(map(accepted, TEXTS)) > 20
    agree(TEXTS)


JSON_LIKE = st.recursive(
    st.booleans() | st.integers(-2, 2**54) | st.text(max_size=5) | st.none() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "a_", "aa", "b1", "B", "é", "__proto__"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=3, deadline=None)
@given(
    st.lists(
        JSON_LIKE.map(lambda value: canonical.dump(value)) | st.text() | st.binary(),
        min_size=200,
        max_size=300,
    )
)
def test_both_verifiers_agree_on_random_texts(lines: list[Line]) -> None:
    agree(lines)


def test_only_newlines_separate_lines() -> None:
    files = [b"", b"\n", b"\n\n", b"a", b"a\n", b"a\n\n", b"a\r\nb\n", b"a\x0bb\xe2\x80\xa8\n\xff"]
    answers = ask({"do": "split", "file": file.hex()} for file in files)
    assert answers == [[line.hex() for line in bundle.read(file)] for file in files]


# Ed25519 keys for which anyone can sign, and points in a non-canonical encoding

P = 2**255 - 19
EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
TWISTED = [0, 1, P - 1, P, P + 1, EIGHTH, P - EIGHTH, 2**255 - 1, P + 18]
WEAK = [(y | sign << 255).to_bytes(32, "little") for y in TWISTED for sign in (0, 1)]
SOUND = [mutated_notes.NoteSigner(some_bytes("key", n)).public for n in range(9)]


def test_weak_points_are_rejected() -> None:
    answers = ask({"do": "sound", "point": point.hex()} for point in [*WEAK, *SOUND])
    assert [answer["ok"] for answer in answers] == [False] * len(WEAK) + [True] * len(SOUND)


def test_the_points_of_order_eight_satisfy_the_curve_equation() -> None:
    """On −x² + y² = 1 + d·x²·y², doubling gives y = 0 where x² = −y², so d·y⁴ + 2·y² = 1."""
    d = -121665 * pow(121666, -1, P) % P
    for y in (EIGHTH, P - EIGHTH):
        assert (d * pow(y, 4, P) + 2 * y * y - 1) % P == 0


def test_openssl_accepts_forged_signatures_of_a_weak_key() -> None:
    """With R and key the neutral point and s = 0 the equation holds for every message."""
    neutral = (1).to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), b"any")
    assert not verifies(neutral, neutral + bytes(32), b"any")
    signer = Ed25519PrivateKey.from_private_bytes(HOUSE_SEED)
    assert verifies(signer.public_key().public_bytes_raw(), signer.sign(b"any"), b"any")


def test_neither_verifier_accepts_signatures_of_weak_keys() -> None:
    """Signatures of a house or a player."""
    bundles = []
    for number, key in enumerate([*WEAK, SOUND[0]]):
        for body in ((1).to_bytes(32, "little") + bytes(32), key + bytes(32)):
            log = LogBuilder().open_table()
            log.append("SeatTaken", seat=1, name="", key=key.hex())
            lines = log.close_table().lines()
            note = mutated_notes.weak_cosignature(lines[-1], key, body)
            bundles.append(Bundle(f"player {number}", [*lines[:-1], note]))
            bundles.append(Bundle(f"house {number}", mutated_notes.weak_house(log, key, body)))
    found, reports = compare(bundles)
    assert found == []
    assert {report.fault and report.fault.check for report in reports} == {"heads"}
