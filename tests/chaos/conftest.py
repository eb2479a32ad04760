from __future__ import annotations

from tests.harness.fixtures import server

__all__ = ["server"]
