"""Persistent data of a player: tokens, entropy, verified signed heads, evidence of fraud.

In memory, or in a folder with one sub-folder per table that only its owner can read:

    seat.json            token, host_token, seat, key … of the table, as far as known; shared,
                         whether other clients may play the seat, too;
                         player_seed, the Ed25519 key that this player cosigns with; joining, the
                         id of a `table.join` without an answer yet
    nonces.jsonl         {"nonce","key"} before its digest is sent, {"revealed","key"}
                         before the nonce is sent
    checkpoints.jsonl    {"edge","note","size"}, one per verified head
    evidence-<n>.json    evidence that the server cheated
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import ConfigurationError

_SEAT_TOKEN = re.compile(r"seat\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,14})\.")

NO_SEAT: dict[str, Any] = {"token": None, "seat": None, "since": None, "shared": False}
"""What is stored of a seat that was given up."""

NonceKey = tuple[int, int, int, int]
"""round, k, seat, and the version at which the seat was taken: the key of a nonce."""


@dataclass(slots=True)
class Nonce:
    """A nonce, 32 bytes, and the root of the head it was revealed under; empty before that."""

    value: bytes
    revealed_under: bytes = b""


class SavedHead(NamedTuple):
    """A verified signed head: size, C2SP note, right edge of the tree (32 bytes each)."""

    size: int
    note: str
    edge: tuple[bytes, ...]


class TableStore:
    """The data of one table, in memory."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.nonces: dict[NonceKey, Nonce] = {}
        self._drawn: set[bytes] = set()  # every nonce ever stored
        self.heads: list[SavedHead] = []
        self.evidence: list[dict[str, Any]] = []

    def update(self, **members: Any) -> None:
        """Update members of the record: token, host_token, invite, seat, name, key (hex)."""
        self.record.update(members)

    def save_nonce(self, key: NonceKey, value: bytes) -> None:
        """Store a nonce durably. ConfigurationError if it was stored before."""
        if value in self._drawn:
            raise ConfigurationError(
                "This machine's random generator returned the same 32 bytes twice, so others could "
                "predict them: play from another machine."
            )
        self._drawn.add(value)
        self.nonces[key] = Nonce(value)

    def mark_revealed(self, key: NonceKey, *, root: bytes) -> None:
        """Store, before the nonce is sent, that it was revealed under the head with this root."""
        self.nonces[key].revealed_under = root

    def save_head(self, head: SavedHead) -> None:
        """Store a verified signed head."""
        self.heads.append(head)

    def save_evidence(self, evidence: dict[str, Any]) -> str | None:
        """Store evidence; the path of its file, None in memory."""
        self.evidence.append(evidence)
        return None


class TableFolder(TableStore):
    """The data of one table in a folder, durable when a method returns."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        seat = path / "seat.json"
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if seat.exists():
                self.record: dict[str, Any] = with_seat(json.loads(seat.read_text()))
            for line in _lines(path / "nonces.jsonl"):
                self._read_nonce(line)
            self.heads: list[SavedHead] = [
                SavedHead(line["size"], line["note"], tuple(map(bytes.fromhex, line["edge"])))
                for line in _lines(path / "checkpoints.jsonl")
            ]
            self.evidence: list[dict[str, Any]] = [
                json.loads(file.read_text()) for file in sorted(path.glob("evidence-*.json"))
            ]
        except (OSError, RecursionError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"The client's folder {path} cannot be read: {error}"
            ) from error

    def update(self, **members: Any) -> None:
        """Update `seat.json`, replaced atomically."""
        if all(self.record.get(name) == value for name, value in members.items()):
            return
        super().update(**members)
        fresh = self.path / "seat.json.new"
        _write(fresh, json.dumps(self.record, sort_keys=True), os.O_TRUNC)
        os.replace(fresh, self.path / "seat.json")
        _sync_folder(self.path)

    def save_nonce(self, key: NonceKey, value: bytes) -> None:
        """Append a nonce to `nonces.jsonl`."""
        super().save_nonce(key, value)
        self._append("nonces.jsonl", {"nonce": value.hex(), "key": key})

    def mark_revealed(self, key: NonceKey, *, root: bytes) -> None:
        """Append to `nonces.jsonl` that a nonce was revealed."""
        super().mark_revealed(key, root=root)
        self._append("nonces.jsonl", {"revealed": root.hex(), "key": key})

    def save_head(self, head: SavedHead) -> None:
        """Append a head to `checkpoints.jsonl`."""
        super().save_head(head)
        edge = [node.hex() for node in head.edge]
        self._append("checkpoints.jsonl", {"edge": edge, "note": head.note, "size": head.size})

    def save_evidence(self, evidence: dict[str, Any]) -> str | None:
        """Write the next `evidence-N.json`; its path."""
        super().save_evidence(evidence)
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
        round_, k, seat, since = line["key"]
        key = (round_, k, seat, since)
        if "nonce" in line:
            self.nonces[key] = Nonce(bytes.fromhex(line["nonce"]))
            self._drawn.add(self.nonces[key].value)
        else:
            self.nonces[key].revealed_under = bytes.fromhex(line["revealed"])


class Store:
    """The data of all tables of one player; persistent with a folder."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._tables: dict[str, TableStore] = {}

    def table(self, table_id: str) -> TableStore:
        """The data of a table, 32 hex digits. ConfigurationError if its files are damaged."""
        stored = self._tables.get(table_id)
        if stored is None:
            stored = TableStore() if self._folder is None else TableFolder(self._folder / table_id)
            self._tables[table_id] = stored
        return stored

    def tables(self) -> list[str]:
        """Ids of the tables with stored data."""
        if self._folder is None or not self._folder.is_dir():
            return sorted(self._tables)
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())


def with_seat(record: dict[str, Any]) -> dict[str, Any]:
    """The record with `seat` and `since` as in the token; ValueError if neither has them.

    A record that another program wrote may lack them, and without `since` the client would take its
    seat for another player's, and send no random bytes.
    """
    token = record.get("token")
    if not token:
        return record
    found = _SEAT_TOKEN.match(token)
    if found is not None:
        return record | {"seat": int(found[1]), "since": int(found[2])}
    if type(record.get("since")) is not int:
        raise ValueError(
            "seat.json has a token of an unknown form, and no `since`, the version at which the "
            "seat was taken"
        )
    return record


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
        raise ConfigurationError(
            f"{file}, which this client needs, cannot be written: {error}"
        ) from error


def _sync_folder(path: Path) -> None:
    """A file that was made or renamed is only safe once its folder is, too."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
