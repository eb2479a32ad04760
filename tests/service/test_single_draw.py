"""The encoding of a single draw gives the same bytes as the general encoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dealer.eventlog.keys import NONCE_BYTES
from dealer.eventlog.rows import leaf_of
from dealer.game.events import CardDrawn
from dealer.proof import codec
from dealer.proof.tree import Tree, leaf_hash
from dealer.service import Service
from dealer.service.commands.executor import NONCES, _hidden, encode
from dealer.service.tables.round_secret import RoundSecret, private_part

TABLE = bytes(range(16))
SECRET = RoundSecret(table=TABLE, round=3, secret=b"s" * 64, wrapped=b"")
ASCII = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
NUMBERS = st.integers(0, 2**32 - 1)

DRAWS = st.builds(
    CardDrawn,
    round=NUMBERS,
    seat=NUMBERS,
    source=st.just("deck") | st.text(ASCII, min_size=1, max_size=32).map("pile:{}".format),
    slot=NUMBERS,
    card=st.text(ASCII, min_size=1, max_size=16),
)


@given(
    DRAWS,
    st.integers(0, 2**53 - 2),
    st.integers(0, 2**53 - 1),
    st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    st.lists(st.binary(min_size=32, max_size=32), max_size=9),
)
def test_a_draw_is_encoded_as_any_other_event(
    event: CardDrawn, version: int, at: int, nonce: bytes, leaves: list[bytes]
) -> None:
    tree, expected = Tree(), Tree()
    tree.extend(leaves)
    expected.extend(leaves)
    found = encode(event, TABLE.hex(), version + 1, at, tree, SECRET, nonce)
    assert found.public == codec.encode_public(event)
    assert (found.commitment, found.hidden) == _hidden(event, version + 1, SECRET, nonce)
    assert (found.seat, found.private) == private_part(event, SECRET)
    assert (found.version, found.at, found.type, found.event) == (
        version + 1, at, "CardDrawn", event,
    )  # fmt: skip
    assert found.leaf == leaf_of(TABLE, found)
    expected.append(leaf_hash(found.leaf.encode()))
    assert (tree.size, tree.root()) == (expected.size, expected.root())


async def test_no_nonce_is_used_twice(service: Service) -> None:
    counts = [1, 3, NONCES, 2 * NONCES, 1, *[1] * (2 * NONCES)]
    drawn = b"".join(service.executor._nonces(count) for count in counts)
    size = NONCE_BYTES
    assert len(drawn) == size * sum(counts)
    nonces = {drawn[at : at + size] for at in range(0, len(drawn), size)}
    assert len(nonces) == sum(counts)
