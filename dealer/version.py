"""The version of both distributions, of the npm package and of the image; and what of it runs."""

from __future__ import annotations

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
    package, total = Path(__file__).parent, sha256()
    files = {file.relative_to(package).as_posix(): file for file in package.rglob("*.*")}
    for name, file in sorted(files.items()):
        if file.suffix in _CODE and not _ELSEWHERE.search(name):
            total.update(f"{name} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return f"{__version__}+{total.hexdigest()[:12]}"
