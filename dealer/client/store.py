"""What a player must not lose: tokens, the random bytes given to shuffles, signed heads, evidence.

In memory, or in a folder with one sub-folder for each table, which nobody else can read:

    seat.json            token, host_token, seat, key … of the table, as far as known, and
                         player_seed, the Ed25519 key that this player cosigns with there
    nonces.jsonl         {"nonce","sitting"} before a digest goes, {"revealed","sitting"} before r
    checkpoints.jsonl    {"edge","note","size"}, each a head that was checked
    evidence-<n>.json    what was kept when the house was caught
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import SetupError

Sitting = tuple[int, int, int, int]
"""round, k, seat, and the version at which the seat was taken: what one nonce is drawn for."""


@dataclass(slots=True)
class Nonce:
    """r, 32 bytes, and the root of the C1 that it was revealed under; empty before that."""

    value: bytes
    revealed_under: bytes = b""


class SavedHead(NamedTuple):
    """A signed head that was checked: size, C2SP note, right edge of the tree (32 bytes each)."""

    size: int
    note: str
    edge: tuple[bytes, ...]


class TableStore:
    """What is kept about one table; this one forgets it with the process."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.nonces: dict[Sitting, Nonce] = {}
        self._drawn: set[bytes] = set()  # every nonce that was ever kept here
        self.heads: list[SavedHead] = []
        self.evidence: list[dict[str, Any]] = []

    def learn(self, **facts: Any) -> None:
        """Keep what is known of the table: token, host_token, invite, seat, name, key (hex) …"""
        self.facts.update(facts)

    def keep_nonce(self, sitting: Sitting, value: bytes) -> None:
        """Keep r; it is safe when this returns. SetupError if it was kept here before."""
        if value in self._drawn:
            raise SetupError(
                "This machine's source of random bytes gave the same 32 bytes twice, so others "
                "could know them: play from another machine."
            )
        self._drawn.add(value)
        self.nonces[sitting] = Nonce(value)

    def mark_revealed(self, sitting: Sitting, *, root: bytes) -> None:
        """Remember, before r leaves, that it was revealed under the C1 with this root."""
        self.nonces[sitting].revealed_under = root

    def keep_head(self, head: SavedHead) -> None:
        self.heads.append(head)

    def keep_evidence(self, evidence: dict[str, Any]) -> str | None:
        """Keep evidence; the path of its file, if it has one."""
        self.evidence.append(evidence)
        return None


class TableFolder(TableStore):
    """What is kept about one table, in a folder, as soon as each method returns."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        seat = path / "seat.json"
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if seat.exists():
                self.facts = json.loads(seat.read_text())
            for line in _lines(path / "nonces.jsonl"):
                self._read_nonce(line)
            self.heads = [
                SavedHead(line["size"], line["note"], tuple(map(bytes.fromhex, line["edge"])))
                for line in _lines(path / "checkpoints.jsonl")
            ]
            self.evidence = [
                json.loads(file.read_text()) for file in sorted(path.glob("evidence-*.json"))
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SetupError(
                f"The folder {path} that this client keeps its seat in cannot be read: {error}"
            ) from error

    def learn(self, **facts: Any) -> None:
        if all(self.facts.get(name) == value for name, value in facts.items()):
            return
        super().learn(**facts)
        fresh = self.path / "seat.json.new"
        _write(fresh, json.dumps(self.facts, sort_keys=True), os.O_TRUNC)
        os.replace(fresh, self.path / "seat.json")
        _sync_folder(self.path)

    def keep_nonce(self, sitting: Sitting, value: bytes) -> None:
        super().keep_nonce(sitting, value)
        self._append("nonces.jsonl", {"nonce": value.hex(), "sitting": sitting})

    def mark_revealed(self, sitting: Sitting, *, root: bytes) -> None:
        super().mark_revealed(sitting, root=root)
        self._append("nonces.jsonl", {"revealed": root.hex(), "sitting": sitting})

    def keep_head(self, head: SavedHead) -> None:
        super().keep_head(head)
        edge = [node.hex() for node in head.edge]
        self._append("checkpoints.jsonl", {"edge": edge, "note": head.note, "size": head.size})

    def keep_evidence(self, evidence: dict[str, Any]) -> str | None:
        super().keep_evidence(evidence)
        file = self.path / f"evidence-{len(self.evidence)}.json"
        _write(file, json.dumps(evidence, indent=1, sort_keys=True), os.O_TRUNC)
        return str(file)

    def _append(self, name: str, line: dict[str, Any]) -> None:
        file = self.path / name
        new = not file.exists()
        _write(file, json.dumps(line) + "\n", os.O_APPEND)
        if new:
            _sync_folder(self.path)

    def _read_nonce(self, line: dict[str, Any]) -> None:
        round_, k, seat, since = line["sitting"]
        sitting = (round_, k, seat, since)
        if "nonce" in line:
            self.nonces[sitting] = Nonce(bytes.fromhex(line["nonce"]))
            self._drawn.add(self.nonces[sitting].value)
        else:
            self.nonces[sitting].revealed_under = bytes.fromhex(line["revealed"])


class Store:
    """All tables of one player; with a folder they outlive the process."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._tables: dict[str, TableStore] = {}

    def table(self, table_id: str) -> TableStore:
        """What is kept about a table; `table_id` is 32 hex digits. SetupError if it is damaged."""
        kept = self._tables.get(table_id)
        if kept is None:
            in_memory = self._folder is None
            kept = TableStore() if in_memory else TableFolder(self._path() / table_id)
            self._tables[table_id] = kept
        return kept

    def tables(self) -> list[str]:
        """Ids of the tables that something is kept about."""
        if self._folder is None or not self._folder.is_dir():
            return sorted(self._tables)
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file; what a crash left of the last one is cut off."""
    if not file.exists():
        return
    text = file.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        os.truncate(file, whole)
    for line in text[:whole].splitlines():
        yield json.loads(line)


def _write(file: Path, text: str, how: int) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o600)
        with open(descriptor, "wb") as opened:
            opened.write(text.encode())
            opened.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise SetupError(f"{file}, which this client needs, cannot be written: {error}") from error


def _sync_folder(path: Path) -> None:
    """A file that was made or renamed is only safe once its folder is, too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
