"""The client's files: one folder up in a clone, in this folder in its source distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = (
    "__init__.py", "LICENSE", "backoff.py", "client", "errors.py", "game", "proof", "py.typed",
    "version.py",
)  # fmt: skip


class Sources(BuildHookInterface[Any]):
    """Adds the files of `dealer` to the wheel and to the source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        here = Path(self.root)
        folder = here / "dealer" if (here / "dealer").is_dir() else here.parent / "dealer"
        files = build_data["force_include"]
        files.update({str(folder / name): f"dealer/{name}" for name in FILES})
