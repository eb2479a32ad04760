"""Writes dealer/THIRD_PARTY.md: `.venv/bin/python -m tests.distributions.third_party`.

The packages and their versions are those of the image (.compose/requirements.txt), their licences
those that their installed metadata name.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTICE = ROOT / "dealer" / "THIRD_PARTY.md"

# Of packages whose metadata name a licence in words, or only by a classifier.
_NAMED = {
    "aiosqlite": "MIT", "h11": "MIT", "markdown-it-py": "MIT", "mdurl": "MIT", "rich": "MIT",
    "uvloop": "MIT OR Apache-2.0",
}  # fmt: skip

HEAD = """# What is made by others

For those who check licences. dealer is under the [MIT licence](LICENSE). This page is generated
(`python -m tests.distributions.third_party`), and a test compares it.

## In the distributions

| what | in | licence | by |
|---|---|---|---|
| [lean-qr](web/lean-qr/LICENCE.md), QR codes of links | `dealer-server` | MIT | David Evans |
| [courts of the cards](web/cards/LICENCE.md) | `dealer-server` | CC0-1.0 | Adrian Kennard |

`dealer-client` and the npm package `dealer-web` have nothing of others in them, and `dealer-web`
needs no other package.

## In the image

The image has these packages beside `dealer-server`, whose own installation takes them, in newer
versions too, from the registry. Each has the text of its licence in its folder `*.dist-info`.
Python, and the system below it, come with the image that the build begins with: its licences are in
`/usr/share/doc` there. Compose runs three programs beside it, from images of their own projects:
PostgreSQL (PostgreSQL Licence), HAProxy (GPL-2.0-or-later) and Prometheus (Apache-2.0).

| package | version | licence |
|---|---|---|
"""


def pinned() -> dict[str, str]:
    """The version of each package of the image, by its name; not those for Windows only."""
    text = (ROOT / ".compose" / "requirements.txt").read_text("utf-8")
    found = re.findall(r"^([\w.-]+)==([\w.]+)( ; sys_platform == 'win32')?", text, re.MULTILINE)
    return {name: version for name, version, windows in found if not windows}


def licence(package: str) -> str | None:
    """The SPDX expression that the installed package names; None if it is not installed.

    Raises KeyError for a package whose metadata have none and that is not listed here.
    """
    try:
        found = metadata(package)
    except PackageNotFoundError:
        return None
    return str(found["License-Expression"] or _NAMED[package])


def rows() -> dict[str, str]:
    """A line of the table for each package that is installed here, by the package's name."""
    found = {name: (version, licence(name)) for name, version in pinned().items()}
    return {
        name: f"| {name} | {version} | {said} |" for name, (version, said) in found.items() if said
    }


if __name__ == "__main__":
    NOTICE.write_text(HEAD + "\n".join(rows().values()) + "\n", "utf-8")
