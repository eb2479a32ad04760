"""What an agent needs after a restart, in a folder, besides the client's own store.

agent.json    {"server", "table": the table that was used last, "seen": {table: version}}
tables/       the store of the client: tokens, random bytes, verified signed heads
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dealer.errors import ConfigurationError


class Memory:
    """The folder of one agent at one server. ConfigurationError if it is another server's."""

    def __init__(self, folder: Path, server: str) -> None:
        self._file = folder / "agent.json"
        self.tables = folder / "tables"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stored = json.loads(self._file.read_text()) if self._file.exists() else {}
            self._seen: dict[str, int] = dict(stored.get("seen", {}))
            self.table: str | None = stored.get("table")
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise ConfigurationError(
                f"The agent's folder {folder} cannot be read: {error}"
            ) from error
        if stored.get("server", server) != server:
            raise ConfigurationError(
                f"The seats in {folder} are at {stored['server']}: use another folder for {server}."
            )
        self._server = server

    def seen(self, table: str) -> int:
        """The version up to which the agent was given the events of a table."""
        return self._seen.get(table, 0)

    def store(self, table: str, *, seen: int | None = None) -> None:
        """Remember the table as the one in use, and how far the agent has read it."""
        changed = self.table != table or seen not in (None, self._seen.get(table))
        self.table = table
        if seen is not None:
            self._seen[table] = seen
        if changed:
            self._write({"seen": self._seen, "server": self._server, "table": table})

    def _write(self, members: dict[str, Any]) -> None:
        fresh = self._file.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(members, sort_keys=True))
            os.replace(fresh, self._file)
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be written: {error}") from error
