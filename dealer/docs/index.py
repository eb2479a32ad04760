"""The first page, and the navigation in four parts."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.docs.documents import PARTS, Page

_ABOUT = {
    "tutorials": "Begin here: each is a whole task, from the first command to the last.",
    "how-to": "Steps for a task of yours.",
    "reference": "Every method, event, setting, metric, table and command.",
    "explanation": "Why it is as it is: fairness first, without formulas and with them.",
}

_NAMES = {
    "tutorials/start": "Start",
    "how-to/check-by-hand": "Check a bundle with OpenSSL",
    "how-to/services": "Use a server from your own server",
    "how-to/write-tests": "Write tests",
}
"""Names in the navigation where the title says too little, or too much."""


def index_page(pages: Sequence[Page]) -> str:
    """The text of the first page."""
    found = [
        "# dealer\n\nA card dealer server whose shuffles players can verify: every swap, draw and "
        "change of a hand is an event in a SQL log. "
        "To start one, see [Start](tutorials/start.md).\n"
    ]
    for part, name in PARTS.items():
        inside = [page for page in pages if page.name.startswith(f"{part}/")]
        lines = "\n".join(f"{_NAMES.get(page.name, page.title)} <{page.name}>" for page in inside)
        found.append(f"## {name}\n\n{_ABOUT[part]}\n")
        found.append(f"```{{toctree}}\n:caption: {name}\n:maxdepth: 1\n\n{lines}\n```\n")
    return "\n".join(found)
