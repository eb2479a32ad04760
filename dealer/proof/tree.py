"""Merkle tree of RFC 6962: roots and consistency proofs.

A leaf is hashed as H(0x00 ‖ leaf), a node as H(0x01 ‖ left ‖ right), with H = SHA-256; of n leaves
the left subtree has the largest power of two below n. An append-only tree needs only its right
edge: the roots of its perfect subtrees from the largest to the smallest, one for each 1 in the
binary form of its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32


def leaf_hash(leaf: bytes) -> bytes:
    """The hash of a leaf's bytes, 32 bytes (RFC 6962, 2.1)."""
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node over two hashes, 32 bytes (RFC 6962, 2.1)."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """An append-only tree, stored as its right edge; `edge` lists the largest subtree first."""

    __slots__ = ("_edge", "size")

    def __init__(self) -> None:
        self.size: int = 0
        self._edge: list[bytes] = []

    @classmethod
    def from_edge(cls, size: int, edge: Sequence[bytes]) -> Tree:
        """The tree of `size` leaves with this edge; ValueError if their numbers do not fit."""
        if size < 0 or len(edge) != size.bit_count() or any(len(e) != HASH_BYTES for e in edge):
            raise ValueError(f"a tree of {size} leaves has no edge of {len(edge)} such hashes")
        tree = cls()
        tree.size = size
        tree._edge = list(edge)
        return tree

    @property
    def edge(self) -> list[bytes]:
        """The roots of the complete subtrees on the right edge, largest first, 32 bytes each."""
        return list(self._edge)

    def copy(self) -> Tree:
        """An independent copy, in O(log size)."""
        return Tree.from_edge(self.size, self._edge)

    def add(self, leaf: bytes) -> None:
        """Append a leaf, given by its bytes."""
        node, edge, size = sha256(b"\x00" + leaf).digest(), self._edge, self.size
        while size & 1:
            node = sha256(b"\x01" + edge.pop() + node).digest()
            size >>= 1
        edge.append(node)
        self.size += 1

    def append(self, leaf: bytes) -> None:
        """Append a leaf, given by its hash."""
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append leaves, given by their hashes."""
        edge = self._edge
        pop, push, hashed = edge.pop, edge.append, sha256
        size = self.size
        for leaf in leaves:
            rest = size
            while rest & 1:
                leaf = hashed(b"\x01" + pop() + leaf).digest()
                rest >>= 1
            push(leaf)
            size += 1
        self.size = size

    def root(self) -> bytes:
        """The root hash over all leaves; for an empty tree H of the empty string."""
        if not self._edge:
            return sha256().digest()
        root = self._edge[-1]
        for left in self._edge[-2::-1]:
            root = sha256(b"\x01" + left + root).digest()
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over these leaf hashes."""
    tree = Tree()
    tree.extend(leaves)
    return tree.root()


def _split(size: int) -> int:
    """Number of leaves of the left subtree: the largest power of two below `size` > 1."""
    return 1 << (size - 1).bit_length() - 1


def subtrees_of_proof(old: int, new: int) -> list[tuple[int, int]]:
    """(first leaf, end) of the subtrees whose roots are a consistency proof, in its order."""
    if old in (0, new):
        return []
    found: list[tuple[int, int]] = []
    first, size = 0, new
    complete = True  # the subtree starts at leaf 0, so the verifier knows its old root
    while old < size:
        split = _split(size)
        if old <= split:
            found.append((first + split, first + size))
            size = split
        else:
            found.append((first, first + split))
            first, size, old, complete = first + split, size - split, old - split, False
    if not complete:
        found.append((first, first + size))
    return found[::-1]


def verify_consistency(
    *, old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the tree of `new` leaves with `new_root` extends the tree of `old` with `old_root`.

    The algorithm of RFC 9162, 2.1.4.2; every tree extends the empty tree.
    """
    if not 0 <= old <= new or not _hashes(old_root, new_root, *proof):
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == root_of(())
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    node, last = old - 1, new - 1
    while node & 1:
        node >>= 1
        last >>= 1
    old_hash = new_hash = path[0]
    for other in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old_hash = node_hash(other, old_hash)
            new_hash = node_hash(other, new_hash)
            while not node & 1 and node:
                node >>= 1
                last >>= 1
        else:
            new_hash = node_hash(new_hash, other)
        node >>= 1
        last >>= 1
    return last == 0 and old_hash == old_root and new_hash == new_root


def _hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_BYTES for value in values)
