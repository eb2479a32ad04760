"""Proofs over a whole tree of leaf hashes, word by word as RFC 6962 and RFC 9162 define them."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.proof.tree import node_hash, root_of, subtrees_of_proof


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path from leaf `index` to the root over `leaves`, all hashes (RFC 6962, 2.1.1)."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"{len(leaves)} leaves have no index {index}")
    proof: list[bytes] = []
    while len(leaves) > 1:
        split = 1 << (len(leaves) - 1).bit_length() - 1  # the largest power of two below
        left, right = leaves[:split], leaves[split:]
        if index < split:
            proof.append(root_of(right))
            leaves = left
        else:
            proof.append(root_of(left))
            leaves, index = right, index - split
    return proof[::-1]


def verify_inclusion(
    *, leaf: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the leaf hash `leaf` is at `index` in the tree of `size` leaves with `root`.

    The algorithm of RFC 9162, 2.1.3.2.
    """
    if not 0 <= index < size or any(len(one) != 32 for one in (leaf, root, *proof)):
        return False
    last = size - 1
    hash_ = leaf
    for other in proof:
        if last == 0:
            return False
        if index & 1 or index == last:
            hash_ = node_hash(other, hash_)
            while not index & 1 and index:
                index >>= 1
                last >>= 1
        else:
            hash_ = node_hash(hash_, other)
        index >>= 1
        last >>= 1
    return last == 0 and hash_ == root


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """The proof that the tree over `leaves` extends the tree over the first `old` of them.

    All are hashes; RFC 6962, 2.1.2. It is empty if `old` is 0 or the number of leaves. Raises
    ValueError if `old` is larger.
    """
    if not 0 <= old <= len(leaves):
        raise ValueError(f"a tree of {len(leaves)} leaves does not extend one of {old} leaves")
    return [root_of(leaves[first:end]) for first, end in subtrees_of_proof(old, len(leaves))]
