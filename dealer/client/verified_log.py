"""The client's own Merkle tree of a table's log, and the signed heads that must agree with it.

A house that shows two logs has to sign two trees, or break a hash. A contradiction raises
HouseCheated, whose `evidence` here is the signed notes in question, or None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dealer.client.storage import SavedHead
from dealer.errors import HouseCheated
from dealer.proof.checkpoint import NoteFault, cosigners, open_note, read_checkpoint, require_leaves
from dealer.proof.tree import Tree, verify_consistency

ANOTHER_LOG = "The house signed another log than the one that it showed here."
WENT_BACK = "The server showed an older log than it had shown of this table before."
_HASH = re.compile(r"[0-9a-f]{64}")


class Gap(Exception):
    """A version is missing: resume after the last one."""


class VerifiedLog:
    """The tree of one table from version `start` on, and its signed heads.

    `table` is its id, 32 hex digits; `key` its key, 32 bytes, None to trust the first one received;
    `saved` are heads stored earlier.
    """

    def __init__(self, table: str, *, key: bytes | None, saved: Sequence[SavedHead]) -> None:
        self.table = table
        self.key = key
        self.heads: dict[int, bytes] = {}  # size → root, of the compared signed notes
        self.fresh: list[SavedHead] = []  # verified heads for the caller to store
        self.newest: str = saved[-1].note if saved else ""
        self.latest: str = ""  # over the whole log at the last request
        self.cosigners: set[bytes] = set()  # players' keys, whose cosignatures must be valid
        self._saved = sorted(saved)
        self._unread = list(self._saved)  # until the key is known
        self._sizes = {head.size for head in saved}
        self._awaited = {head.size: head.note for head in saved}
        self._opened: dict[str, tuple[int, bytes]] = {}  # notes that were checked
        self._origin = ""  # of its heads, pinned by the first one
        self._early: list[str] = []  # notes received before the key
        self._link: Tree | None = None  # from the newest saved head towards `start`
        self._linked_from = ""  # the note of that head
        self._start = 0
        self._first_edge: list[bytes] = []  # of the tree at `start`
        self._tree = Tree()
        self._hashes: list[bytes] = []  # of leaves start+1, start+2, …
        self._roots = [self._tree.root()]  # at sizes start, start+1, …

    @property
    def version(self) -> int:
        """The number of leaves in this client's tree."""
        return self._tree.size

    @property
    def linked(self) -> bool:
        """Whether the log is known to continue the saved heads."""
        return self._link is None

    def resume_after(self) -> int:
        """The version after which events are needed."""
        return self.version if self._link is None else self._link.size

    def root_at(self, size: int) -> bytes | None:
        """Root of this client's tree at a size; None for a size before its start."""
        if self._start <= size <= self.version:
            return self._roots[size - self._start]
        if self._link is not None and size == self._link.size:
            return self._link.root()
        return None

    def pin(self, key: bytes, origin: str) -> None:
        """Pin the table's key and origin; HouseCheated if they differ from pinned ones."""
        if self.key is None:
            self.key = key
        elif key != self.key:
            raise HouseCheated("This table's key has changed, so it is not the same table.")
        unread, self._unread = self._unread, []
        for head in unread:
            self._open(head.note)
        self._check_origin(origin)

    def grow(self, leaf: bytes) -> None:
        """Append the next leaf's hash, and compare a head that was waiting for this size."""
        self._tree.append(leaf)
        self._hashes.append(leaf)
        self._roots.append(self._tree.root())
        if self.key is not None:
            early, self._early = self._early, []
            for note in early:
                self.checkpoint(note)
        note = self._awaited.pop(self.version, "")
        if note:
            self._compare_head(self.version, note)

    def compare_or_link(self, version: int, leaf: bytes) -> None:
        """Compare a duplicate, or append an event before our start to the link to a saved head."""
        if version > self._start:
            if self._hashes[version - self._start - 1] != leaf:
                raise HouseCheated(f"The server sent two different events as version {version}.")
            return
        link = self._link
        if link is None or version <= link.size:
            return
        if version > link.size + 1:
            raise Gap
        link.append(leaf)
        if link.size == self._start:
            if link.root() != self._roots[0]:
                sentence = "The server's log does not continue the log that was saved."
                raise HouseCheated(sentence, (self._linked_from,))
            self._linked()

    def checkpoint(self, note: str) -> None:
        """Check a signed head, now or when the events it covers have arrived."""
        if self.key is None:
            self._early.append(note)
            return
        size, root = self._open(note)
        if size <= self.version:
            self._compare_head(size, note)
            return
        known = self._awaited.setdefault(size, note)
        if self._open(known)[1] != root:
            raise HouseCheated("The house signed two different logs of one length.", (known, note))

    def check_head(self, note: str) -> None:
        """Check the head over the whole log: not smaller than any head before."""
        self.latest = note
        known = max([*self._sizes, *self._awaited], default=0)
        if known and self._open(note)[0] < known:
            raise HouseCheated(WENT_BACK, (note,))
        self.checkpoint(note)

    def begin(self, *, version: int, edge: Sequence[str], note: str) -> None:
        """Start at a snapshot: the tree's edge and the signed head at `version`."""
        self.check_head(note)
        self._restart(self._tree_of(version, edge, note), note)
        earlier = [head for head in self._saved if head.size < version]
        if earlier:
            self._link = Tree.from_edge(earlier[-1].size, earlier[-1].edge)
            self._linked_from = earlier[-1].note

    def compare(self, *, version: int, edge: Sequence[str], note: str) -> None:
        """Compare a snapshot's tree with this client's, as far as that goes."""
        self._covers(self._tree_of(version, edge, note), note)
        self.checkpoint(note)

    def reset(
        self,
        *,
        version: int,
        edge: Sequence[str],
        note: str,
        proof: Sequence[str] | None,
        after: int,
    ) -> bool:
        """Continue at `version` in place of the events after `after`; whether the tree restarted.

        `proof` is the RFC 6962 consistency proof from `after`. A snapshot that this client already
        has, because it resumed both as host and as player, needs none, unless the client has more.
        Raises Gap for a proof from another version than this client's: from an earlier one it
        would prove nothing about what came since. Such a snapshot is the answer to another resume,
        one before the latest, or to one as host beside the player's.
        The signed head is compared all the same, now or when the events that it covers arrive.
        """
        if version < after or (proof is None and version < self.version):
            raise HouseCheated(WENT_BACK, (note,))
        tree = self._tree_of(version, edge, note)
        covered = self._covers(tree, note)
        if covered and not self._proves_link(after):
            return False
        old_root = self._root_to_continue(after)
        if old_root is None:
            self.checkpoint(note)
            raise Gap
        self._require_continued(tree, note, proof, after=after, old_root=old_root)
        self._linked()
        if not covered:
            self._restart(tree, note)
        return not covered

    def _covers(self, tree: Tree, note: str) -> bool:
        """Whether this client's tree reaches as far as `tree`, which then has the same root."""
        ours = self.root_at(tree.size)
        if ours is not None and ours != tree.root():
            raise HouseCheated(ANOTHER_LOG, (note,))
        return ours is not None

    def _proves_link(self, after: int) -> bool:
        """Whether a snapshot after this version proves the link to the saved head.

        If host and player both resume, only one of them starts at the saved head.
        """
        return self._link is not None and after == self._link.size

    def _root_to_continue(self, after: int) -> bytes | None:
        """The root that a proof from `after` begins with; None if it would prove nothing."""
        return None if self.linked and after != self.version else self.root_at(after)

    def _require_continued(
        self, tree: Tree, note: str, proof: Sequence[str] | None, *, after: int, old_root: bytes
    ) -> None:
        if proof is None:
            raise HouseCheated(WENT_BACK, (self._linked_from, note))
        hashes = self._unhex(proof, note)
        if not verify_consistency(
            old=after, old_root=old_root, new=tree.size, new_root=tree.root(), proof=hashes
        ):
            sentence = "The server's log does not continue the log that this client saw."
            raise HouseCheated(sentence, (self._linked_from, note))

    def _linked(self) -> None:
        self._link = None
        self._awaited = {s: n for s, n in self._awaited.items() if s > self._start}

    def _restart(self, tree: Tree, note: str) -> None:
        self._tree, self._start = tree, tree.size
        self._first_edge = tree.edge
        self._hashes, self._roots = [], [tree.root()]
        self._awaited.pop(tree.size, None)
        self._compare_head(tree.size, note)

    def _compare_head(self, size: int, note: str) -> None:
        _, root = self._open(note)
        ours = self.root_at(size)
        if ours is None:
            return
        if root != ours:
            raise HouseCheated(ANOTHER_LOG, (note,))
        if size in self.heads:
            return
        self.heads[size] = root
        self.newest = note
        # A late head is stored too, unless a later one, which covers it, is stored: entropy is
        # revealed under it, so it must be known after a restart.
        if size not in self._sizes and (size == self.version or size > max(self._sizes, default=0)):
            self.fresh.append(SavedHead(size, note, self._edge_at(size)))
            self._sizes.add(size)

    def _edge_at(self, size: int) -> tuple[bytes, ...]:
        """The edge of this client's tree at an earlier size."""
        if size == self.version:
            return tuple(self._tree.edge)
        tree = Tree.from_edge(self._start, self._first_edge)
        tree.extend(self._hashes[: size - self._start])
        return tuple(tree.edge)

    def _tree_of(self, version: int, edge: Sequence[str], note: str) -> Tree:
        """The tree with this edge, checked against the signed head."""
        size, root = self._open(note)
        try:
            tree = Tree.from_edge(version, self._unhex(edge, note))
        except ValueError as error:
            raise HouseCheated(
                "The server sent the edge of a tree that cannot exist.", (note,)
            ) from error
        if size != version or root != tree.root():
            raise HouseCheated(ANOTHER_LOG, (note,))
        return tree

    def _open(self, note: str) -> tuple[int, bytes]:
        """Size and root of a note that this table's key signed."""
        if note in self._opened:
            return self._opened[note]
        if self.key is None:
            raise HouseCheated("The server sent a signed head before this table's key.", (note,))
        try:
            opened = open_note(note, key=self.key, table=self.table)
            checkpoint = read_checkpoint(note)
            require_leaves(checkpoint)
            cosigners(checkpoint, keys=self.cosigners)
        except NoteFault as fault:
            sentence = "A head of the log is not signed with this table's key, or not validly."
            raise HouseCheated(f"{sentence} {fault}", (note,)) from fault
        self._check_origin(checkpoint.origin, note)
        self._opened[note] = opened
        return opened

    def _check_origin(self, origin: str, *notes: str) -> None:
        """Check that all heads have one origin: two origins would be two logs."""
        if origin != (self._origin or origin):
            sentence = f"The house signed this table as {origin}, and as {self._origin} before."
            raise HouseCheated(sentence, notes)
        self._origin = origin

    def _unhex(self, texts: Sequence[str], note: str) -> list[bytes]:
        # `bytes.fromhex` accepts spaces and capital letters, too.
        if not all(isinstance(text, str) and _HASH.fullmatch(text) for text in texts):
            raise HouseCheated("The server sent hashes that are not lower-case hex.", (note,))
        return [bytes.fromhex(text) for text in texts]
