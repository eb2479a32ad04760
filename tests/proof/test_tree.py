"""The tree against RFC 6962's own definition, for every size up to 33."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from dealer.proof.canonical import encode
from dealer.proof.tree import (
    Tree,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
)
from tests.proof.log_builder import ids, vectors
from tests.proof.whole_tree import consistency_proof, inclusion_proof, verify_inclusion

SIZES = range(34)
LEAVES = [leaf_hash(b"%d" % number) for number in range(34)]
ROOTS: list[bytes] = []


def defined_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1, word by word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return node_hash(defined_root(leaves[:k]), defined_root(leaves[k:]))


ROOTS += [defined_root(LEAVES[:size]) for size in SIZES]


@pytest.mark.parametrize("vector", vectors("root"), ids=ids)
def test_root_vectors(vector: dict[str, Any]) -> None:
    tree = Tree()
    for leaf in vector["in"]["leaves"]:
        tree.append(leaf_hash(bytes.fromhex(leaf)))
    assert tree.root().hex() == vector["out"]["root"]
    assert [node.hex() for node in tree.edge] == vector["out"]["edge"]


@pytest.mark.parametrize("vector", vectors("leaf"), ids=ids)
def test_leaf_vectors(vector: dict[str, Any]) -> None:
    text = encode(vector["in"])
    assert text.decode() == vector["out"]["text"]
    assert leaf_hash(text).hex() == vector["out"]["hash"]


def test_append_and_extend_agree() -> None:
    growing = Tree()
    for size in SIZES:
        bulk = Tree()
        bulk.extend(LEAVES[:size])
        assert growing.root() == bulk.root() == ROOTS[size] == root_of(LEAVES[:size])
        assert growing.edge == bulk.edge
        assert growing.size == bulk.size == size
        if size < 33:
            growing.append(LEAVES[size])


def test_a_tree_continues_from_its_edge() -> None:
    for size in SIZES:
        tree = Tree()
        tree.extend(LEAVES[:size])
        again = Tree.from_edge(size, tree.edge)
        copy = tree.copy()
        again.extend(LEAVES[size:33])
        assert again.root() == ROOTS[33]
        assert copy.root() == ROOTS[size]


@pytest.mark.parametrize(
    ("size", "edge"),
    [(3, [LEAVES[0]]), (0, [LEAVES[0]]), (1, []), (1, [b"short"]), (-1, [LEAVES[0]])],
)
def test_an_impossible_edge_is_refused(size: int, edge: list[bytes]) -> None:
    with pytest.raises(ValueError, match="no edge"):
        Tree.from_edge(size, edge)


def altered(proof: list[bytes]) -> list[list[bytes]]:
    flipped = [
        [*proof[:n], bytes([proof[n][0] ^ 1]) + proof[n][1:], *proof[n + 1 :]]
        for n in range(len(proof))
    ]
    cut = [proof[:-1], proof[1:]] if proof else []
    short = [[*proof[:-1], proof[-1][:31]]] if proof else []
    turned = [proof[::-1]] if proof[::-1] != proof else []
    return [*flipped, *cut, *short, *turned, [*proof, LEAVES[0]], [LEAVES[0], *proof]]


def test_inclusion_proofs_verify_and_altered_ones_do_not() -> None:
    for size in SIZES:
        for index in range(size):
            proof = inclusion_proof(LEAVES[:size], index)

            def holds(
                p: list[bytes], *, leaf: int = index, at: int = index, n: int = size, r: int = size
            ) -> bool:
                return verify_inclusion(leaf=LEAVES[leaf], index=at, size=n, root=ROOTS[r], proof=p)

            assert holds(proof)
            assert not any(holds(other) for other in altered(proof))
            assert not holds(proof, leaf=index + 1 if index < 33 else 0)
            assert not holds(proof, at=index + 1)
            assert not holds(proof, at=-1)
            assert not holds(proof, r=size - 1)
            assert not holds(proof, n=0)


def test_consistency_proofs_verify_and_altered_ones_do_not() -> None:
    for new in SIZES:
        for old in range(new + 1):
            proof = consistency_proof(LEAVES[:new], old)

            def holds(
                p: list[bytes], *, a: int = old, ra: int = old, b: int = new, rb: int = new
            ) -> bool:
                return verify_consistency(
                    old=a, old_root=ROOTS[ra], new=b, new_root=ROOTS[rb], proof=p
                )

            assert holds(proof)
            assert not any(holds(other) for other in altered(proof))
            assert not holds(proof, ra=old + 1 if old < 33 else 0)
            if old:
                assert not holds(proof, rb=new + 1 if new < 33 else 0)
            if old < new:
                assert not holds(proof, a=new, b=old)


def test_proofs_outside_the_tree_are_refused() -> None:
    with pytest.raises(ValueError, match="no index"):
        inclusion_proof(LEAVES[:3], 3)
    with pytest.raises(ValueError, match="does not extend"):
        consistency_proof(LEAVES[:3], 4)


def test_one_root_is_not_valid_for_two_sizes() -> None:
    assert not verify_consistency(old=3, old_root=ROOTS[3], new=3, new_root=ROOTS[4], proof=[])
    assert not verify_consistency(old=0, old_root=ROOTS[1], new=4, new_root=ROOTS[4], proof=[])
