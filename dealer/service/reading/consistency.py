"""Consistency proofs of long tables (RFC 6962, 2.1.2), without reading all events for each.

A proof consists of roots of subtrees. In memory are the roots of the complete blocks of 256 leaves
of each table that a proof was asked for, read from the log once: 12 KB for 100,000 events. A proof
reads the two blocks in which its two versions are, and what was appended since the last proof.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from dealer.eventlog import Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.rows import leaf_of
from dealer.proof.tree import HASH_BYTES, Tree, leaf_hash, subtrees_of_proof
from dealer.service.reading.past_states import Pause
from dealer.service.tables.archive import require_here
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import tampered

BLOCK = 256
"""Leaves of a block, a power of two; reading and hashing one takes a millisecond or two."""


class ConsistencyProofs:
    """Makes the proofs from `log`."""

    def __init__(self, log: Log, damaged: DamagedTables) -> None:
        self._log = log
        self._damaged = damaged
        self._blocks: WeakKeyDictionary[LiveTable, bytearray] = WeakKeyDictionary()

    async def proof(
        self, live_table: LiveTable, *, old: int, new: int, edge: list[str], pause: Pause
    ) -> list[str]:
        """The proof that the first `old` leaves of the `new` ones never changed, in hex.

        `edge` is the edge of the tree of `new` leaves, in hex. `pause` is awaited between slices of
        a few milliseconds. Raises DatabaseDamaged if the log does not have this edge.
        """
        with self._damaged.noticed(live_table.table_id):
            for _ in range(2):
                blocks = self._blocks.setdefault(live_table, bytearray())
                one = _Proof(self._log, live_table, blocks, size=new)
                await one.read_blocks(new // BLOCK, pause)
                if [node.hex() for node in (await one.tree(0, new)).edge] == edge:
                    nodes = []
                    for first, end in subtrees_of_proof(old, new):
                        nodes.append((await one.tree(first, end)).root().hex())
                        await pause()
                    return nodes
                # The log was rewound since the blocks were read.
                self._blocks.pop(live_table, None)
            raise tampered(live_table.table_id)


class _Proof:
    """One proof of `size` leaves: `blocks` are the roots of the table's first blocks, joined."""

    def __init__(self, log: Log, live_table: LiveTable, blocks: bytearray, *, size: int) -> None:
        self._log = log
        self._live_table = live_table
        self._blocks = blocks
        self._size = size
        self._read: dict[int, list[bytes]] = {}

    async def read_blocks(self, count: int, pause: Pause) -> None:
        """Read the log up to this number of blocks, as far as it was not read before."""
        while (block := len(self._blocks) // HASH_BYTES) < count:
            tree = Tree()
            tree.extend(await self._leaves(block * BLOCK, (block + 1) * BLOCK))
            if len(self._blocks) == block * HASH_BYTES:  # not read by another proof meanwhile
                self._blocks += tree.root()
            await pause()

    async def tree(self, first: int, end: int) -> Tree:
        """The subtree of the leaves `first` … `end` - 1, a subtree of a proof."""
        start, stop = first // BLOCK, end // BLOCK
        if first % BLOCK or start == stop:
            tree = Tree()
            tree.extend(await self._leaves_in_block(first, end))
            return tree
        whole, rest = Tree(), Tree()
        whole.extend(
            bytes(self._blocks[at : at + HASH_BYTES])
            for at in range(start * HASH_BYTES, stop * HASH_BYTES, HASH_BYTES)
        )
        if stop * BLOCK < end:
            rest.extend(await self._leaves_in_block(stop * BLOCK, end))
        return Tree.from_edge(end - first, whole.edge + rest.edge)

    async def _leaves_in_block(self, first: int, end: int) -> list[bytes]:
        """Leaf hashes of a part of one block; the block is read once."""
        start = first - first % BLOCK
        leaves = self._read.get(start)
        if leaves is None:
            leaves = await self._leaves(start, min(start + BLOCK, self._size))
            self._read[start] = leaves
        return leaves[first - start : end - start]

    async def _leaves(self, first: int, end: int) -> list[bytes]:
        id_ = self._live_table.id
        rows = await self._log.read(id_, after=first, limit=end - first)
        if len(rows) < end - first:
            await require_here(self._log, id_)
            raise tampered(self._live_table.table_id)
        return [leaf_hash(leaf_of(id_, row).encode()) for row in rows]
