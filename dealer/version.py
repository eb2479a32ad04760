"""The version of both distributions, of the npm package and of the image; and what of it runs."""

from __future__ import annotations

import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

__version__ = "0.1.0"

_CODE = (".py", ".js")
_ELSEWHERE = re.compile("^docs/|/migrations/")


@cache
def running_version() -> str:
    """The version, `+`, and 12 hex digits of the SHA-256 of the package's Python and JavaScript.

    Two checkouts of one release differ in them, wherever the files come from: a clone, a wheel or
    an image. The migrations, which a checkout has elsewhere, and the generator of the documents,
    which a wheel has not, are left out.
    """
    package, total = str(Path(__file__).parent), sha256()
    files = {
        f"{folder}/{name}"[len(package) + 1 :].replace("\\", "/"): f"{folder}/{name}"
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(_CODE)
    }
    for name, path in sorted(files.items()):
        if not _ELSEWHERE.search(name):
            with open(path, "rb") as file:
                total.update(f"{name} {sha256(file.read()).hexdigest()}\n".encode())
    return f"{__version__}+{total.hexdigest()[:12]}"
