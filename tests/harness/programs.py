"""Programs that a test runs to their end."""

from __future__ import annotations

import subprocess
from typing import Any


def output_of(*command: object, **options: Any) -> str:
    """What a program prints; the test fails if the program does."""
    text: dict[str, Any] = {"capture_output": True, "encoding": "utf-8"}
    done = subprocess.run(list(map(str, command)), check=False, **(text | options))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return str(done.stdout)
