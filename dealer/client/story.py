"""The log as this client holds it: a tree of its own, and the signed heads that must agree with it.

A house that tells two stories has to sign two trees, or break a hash. What contradicts is raised as
HouseCheated, whose `evidence` here is the note in question, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from dealer.client.store import SavedHead
from dealer.errors import HouseCheated
from dealer.proof.checkpoint import NoteFault, open_note, read_checkpoint
from dealer.proof.tree import HASH_BYTES, Tree, verify_consistency

ANOTHER_LOG = "The house signed another log than the one that it showed here."
WENT_BACK = "The house went back behind what it had shown of this table."


class Gap(Exception):
    """A version is missing: resume after the last one that came."""


class Story:
    """The tree of one table from version `start` on, and its signed heads.

    `table` is its id, 32 hex digits; `key` the 32 bytes that its heads are signed with, None to
    trust the first that comes; `saved` heads kept from earlier.
    """

    def __init__(self, table: str, *, key: bytes | None, saved: Sequence[SavedHead]) -> None:
        self.table = table
        self.key = key
        self.heads: dict[int, bytes] = {}  # size → root, where a signed note was compared
        self.fresh: list[SavedHead] = []  # heads that were checked; the caller keeps them
        self.newest = saved[-1].note if saved else ""
        self.latest = ""  # over all that the house had when it was last asked
        self._saved = sorted(saved)
        self._sizes = {head.size for head in saved}
        self._awaited = {head.size: head.note for head in saved}
        self._origin = ""  # under which its heads are signed, from the first one that was read on
        self._early: list[str] = []  # notes that came before the key that they are signed with
        self._link: Tree | None = None  # from the newest saved head towards `start`
        self._linked_from = ""  # the note of that head
        self._bases: dict[int, bytes] = {}  # roots that a reset was proved from
        self._start = 0
        self._first_edge: list[bytes] = []  # of the tree at `start`
        self._tree = Tree()
        self._hashes: list[bytes] = []  # of leaves start+1, start+2, …
        self._roots = [self._tree.root()]  # at sizes start, start+1, …

    @property
    def version(self) -> int:
        return self._tree.size

    @property
    def linked(self) -> bool:
        """Whether what is followed is known to continue what was saved earlier."""
        return self._link is None

    def resume_after(self) -> int:
        """The version after which events are needed."""
        return self.version if self._link is None else self._link.size

    def root_at(self, size: int) -> bytes | None:
        """Root of our own tree at an earlier size; None from before we were there."""
        if self._start <= size <= self.version:
            return self._roots[size - self._start]
        if self._link is not None and size == self._link.size:
            return self._link.root()
        return None

    def pin(self, key: bytes, origin: str) -> None:
        """These are the table's key and origin, from the first time on."""
        if self.key is None:
            self.key = key
        elif key != self.key:
            raise HouseCheated("This table's key is not the one it had: it is another table.")
        if self._saved:
            self._open(self._saved[0].note)
        self._stay_under(origin)

    def grow(self, leaf: bytes) -> None:
        """Add the next event by its leaf's hash, and compare the head that is due there."""
        self._tree.append(leaf)
        self._hashes.append(leaf)
        self._roots.append(self._tree.root())
        if self.key is not None:
            early, self._early = self._early, []
            for note in early:
                self.checkpoint(note)
        note = self._awaited.pop(self.version, "")
        if note:
            self._settle(self.version, note)

    def again(self, version: int, leaf: bytes) -> None:
        """An event that came before is the same one; one from before our start is a link to it."""
        if version > self._start:
            if self._hashes[version - self._start - 1] != leaf:
                raise HouseCheated(f"The house told event {version} in two different ways.")
            return
        link = self._link
        if link is None or version <= link.size:
            return
        if version > link.size + 1:
            raise Gap
        link.append(leaf)
        if link.size == self._start:
            if link.root() != self._roots[0]:
                sentence = "The house's log does not continue the one that was saved."
                raise HouseCheated(sentence, (self._linked_from,))
            self._linked()

    def checkpoint(self, note: str) -> None:
        """Take a signed head; it is compared now, or when the events under it have come."""
        if self.key is None:
            self._early.append(note)
            return
        size, root = self._open(note)
        if size <= self.version:
            self._settle(size, note)
            return
        known = self._awaited.setdefault(size, note)
        if self._open(known)[1] != root:
            raise HouseCheated("The house signed two different logs of one length.", (known, note))

    def whole(self, note: str) -> None:
        """Take the head over all that the house has: no less than it ever signed before."""
        self.latest = note
        known = max([*self._sizes, *self._awaited], default=0)
        if known and self._open(note)[0] < known:
            raise HouseCheated(WENT_BACK, (note,))
        self.checkpoint(note)

    def begin(self, *, version: int, edge: Sequence[str], note: str) -> None:
        """Start in the middle: the tree's edge and the signed head at `version`."""
        self.whole(note)
        self._restart(self._tree_of(version, edge, note), note)
        behind = [head for head in self._saved if head.size < version]
        if behind:
            self._link = Tree.from_edge(behind[-1].size, behind[-1].edge)
            self._linked_from = behind[-1].note

    def compare(self, *, version: int, edge: Sequence[str], note: str) -> None:
        """What who begins here is told must be what we hold, as far as we are."""
        root = self._tree_of(version, edge, note).root()
        ours = self.root_at(version)
        if ours is not None and ours != root:
            raise HouseCheated(ANOTHER_LOG, (note,))
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
        """Go on at `version` in place of the events after `after`; whether the tree began anew.

        `proof` is the RFC 6962 consistency proof from `after`. A snapshot of what we hold already,
        as somebody who is host and player gets it twice, needs none, unless we hold more. Raises
        Gap where it leads on from the empty log, which proves nothing about what we hold.
        """
        if version < after or (proof is None and version < self.version):
            raise HouseCheated(WENT_BACK, (note,))
        tree = self._tree_of(version, edge, note)
        ours = self.root_at(version)
        if ours is not None and ours != tree.root():
            raise HouseCheated(ANOTHER_LOG, (note,))
        # Asked for twice, as host and as player, before anything was held: the link to what was
        # saved earlier is proved by the resume that begins there, and by nothing else.
        if ours is not None and (self._link is None or after != self._link.size):
            return False
        old_root = self._bases.get(after) or self.root_at(after)
        if old_root is None and after == 0:
            raise Gap
        if old_root is None or proof is None:
            raise HouseCheated(WENT_BACK, (self._linked_from, note))
        if not verify_consistency(
            old=after,
            old_root=old_root,
            new=version,
            new_root=tree.root(),
            proof=self._unhex(proof, note),
        ):
            sentence = "The house's log does not continue the one that this client saw."
            raise HouseCheated(sentence, (self._linked_from, note))
        self._linked()
        if ours is not None:
            return False
        self._bases[after] = old_root
        self._restart(tree, note)
        return True

    def _linked(self) -> None:
        self._link = None
        self._awaited = {s: n for s, n in self._awaited.items() if s > self._start}

    def _restart(self, tree: Tree, note: str) -> None:
        self._tree, self._start = tree, tree.size
        self._first_edge = tree.edge
        self._hashes, self._roots = [], [tree.root()]
        self._awaited.pop(tree.size, None)
        self._settle(tree.size, note)

    def _settle(self, size: int, note: str) -> None:
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
        # One that came late is kept, too, unless a later one is, which covers it: bytes are shown
        # under it, so it must be known again after a restart.
        if size not in self._sizes and (size == self.version or size > max(self._sizes, default=0)):
            self.fresh.append(SavedHead(size, note, self._edge_at(size)))
            self._sizes.add(size)

    def _edge_at(self, size: int) -> tuple[bytes, ...]:
        """The edge of our own tree at an earlier size, from our start on."""
        if size == self.version:
            return tuple(self._tree.edge)
        tree = Tree.from_edge(self._start, self._first_edge)
        tree.extend(self._hashes[: size - self._start])
        return tuple(tree.edge)

    def _tree_of(self, version: int, edge: Sequence[str], note: str) -> Tree:
        """The tree with this edge, if the house's signed head is over just that."""
        size, root = self._open(note)
        try:
            tree = Tree.from_edge(version, self._unhex(edge, note))
        except ValueError as error:
            raise HouseCheated("The house gave a tree that cannot be.", (note,)) from error
        if size != version or root != tree.root():
            raise HouseCheated(ANOTHER_LOG, (note,))
        return tree

    def _open(self, note: str) -> tuple[int, bytes]:
        """Size and root of a note that this table's key signed."""
        if self.key is None:
            self._no_key(note)
        try:
            opened = open_note(note, key=self.key, table=self.table)
        except NoteFault as fault:
            sentence = f"A head of the log is not signed with this table's key. {fault}"
            raise HouseCheated(sentence, (note,)) from fault
        self._stay_under(read_checkpoint(note).origin, note)
        return opened

    def _stay_under(self, origin: str, *notes: str) -> None:
        """A table has one origin: two would be two logs, and only one of them shown to each."""
        if origin != (self._origin or origin):
            sentence = f"The house calls this table {origin}, and called it {self._origin} before."
            raise HouseCheated(sentence, notes)
        self._origin = origin

    def _no_key(self, note: str) -> NoReturn:
        raise HouseCheated("The house signed a head before it named this table's key.", (note,))

    def _unhex(self, texts: Sequence[str], note: str) -> list[bytes]:
        if not all(is_hash(text) for text in texts):
            raise HouseCheated("The house gave hashes in a form that proves nothing.", (note,))
        return [bytes.fromhex(text) for text in texts]


def is_hash(text: object) -> bool:
    """Whether this is 32 bytes as lower-case hex, which decoders do not look at closely."""
    digits = isinstance(text, str) and len(text) == 2 * HASH_BYTES
    try:
        return digits and bytes.fromhex(str(text)).hex() == text
    except ValueError:
        return False
