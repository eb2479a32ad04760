"""The server's garbage collector does not go over the program again and again."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from dealer.cli import serve
import dealer.gateway, dealer.service.opening
gc.collect()
before = len(gc.get_objects())
serve.settle_garbage_collector()
print(before, len(gc.get_objects()), gc.get_threshold()[2])
"""


def test_what_is_loaded_at_the_start_is_not_collected_again() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True
    )
    before, after, full = map(int, run.stdout.split())
    assert after < before / 50
    assert full == 30
