"""Which page of the site each document is, and how a long one is cut into pages.

The documents stay where they are. A page's name begins with one of the four parts of the site; a
document without a place of its own here is found under how-to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dealer.docs import markdown

ROOT = Path(__file__).parents[2]
"""The clone: the site needs documents that are not in the wheel."""

PARTS = {
    "tutorials": "Tutorials",
    "how-to": "How-to",
    "reference": "Reference",
    "explanation": "Explanation",
}

PLACES: dict[str, str | dict[str, str]] = {
    "README.md": "tutorials/start",
    "dealer/docs/tutorials/family-table.md": "tutorials/family-table",
    "dealer/docs/tutorials/backend.md": "tutorials/backend",
    "dealer/docs/tutorials/bot.md": "tutorials/bot",
    "dealer/docs/tutorials/audit.md": "tutorials/audit",
    "dealer/web/CLIENT.md": "how-to/clients",
    "dealer/web/PROTOCOL.md": "reference/protocol",
    ".client/README.md": "how-to/python-client",
    "dealer/gateway/SERVICES.md": "how-to/services",
    "dealer/feed/README.md": "how-to/feed",
    "dealer/gateway/DECKS.md": "how-to/decks",
    "dealer/bots/README.md": "how-to/bots",
    "dealer/packs/README.md": "how-to/packs",
    "dealer/proof/README.md": "how-to/check-by-hand",
    "dealer/lab/README.md": "how-to/test-shuffles",
    "dealer/cli/OPERATING.md": {
        "": "how-to/operate",
        "Messages": "reference/messages",
        "The files": "reference/files",
    },
    "dealer/cli/MANY_NODES.md": "how-to/many-nodes",
    "dealer/cli/REFERENCE.md": {
        "": "reference/operators",
        "Settings": "reference/settings",
        "Headers of proxies": "reference/proxies",
        "Metrics": "reference/metrics",
        "Alerts": "reference/alerts",
        "Log lines": "reference/log-lines",
        "Output of commands": "reference/output",
        "SQL": "reference/sql",
    },
    "dealer/cli/BENCHMARKS.md": "explanation/benchmarks",
    "dealer/analysis/README.md": "how-to/read-the-log",
    "dealer/analysis/QUESTIONS.md": "how-to/questions-in-sql",
    "dealer/projector/DICTIONARY.md": "reference/dictionary",
    ".github/CONTRIBUTING.md": "how-to/contribute",
    "dealer/docs/README.md": "how-to/write-documents",
    "tests/harness/README.md": "how-to/write-tests",
    "dealer/GLOSSARY.md": "reference/glossary",
    "dealer/CHANGELOG.md": "reference/changelog",
    "dealer/web/cards/LICENCE.md": "reference/pictures",
    "dealer/docs/explanation/fairness.md": "explanation/fairness",
    "dealer/docs/explanation/formulas.md": "explanation/formulas",
    "dealer/THREATS.md": "explanation/threats",
    "dealer/eventlog/CHANGED_COLUMNS.md": "reference/changed-columns",
    "dealer/ARCHITECTURE.md": "explanation/architecture",
    "dealer/DECISIONS.md": "explanation/decisions",
    "dealer/eventlog/README.md": "explanation/databases",
    "dealer/cli/SCALING.md": "explanation/scaling",
    "dealer/game/README.md": "explanation/game",
    "dealer/service/README.md": "explanation/service",
    "dealer/web/README.md": "explanation/web",
    "tests/eventlog/README.md": "explanation/wal-tests",
    "tests/model/README.md": "explanation/models",
    "tests/simulation/README.md": "explanation/simulation",
}
"""The page of each document, or of each section of it, in the order of the navigation.

The section "" is what precedes the first one. Sections that are not named are how-to pages.
"""


class Page(NamedTuple):
    """A page of the site: its name without an ending, its document, its Markdown text."""

    name: str
    source: str
    text: str

    @property
    def title(self) -> str:
        return markdown.title(self.text)


def documents() -> list[str]:
    """The paths of all documents: two READMEs, CONTRIBUTING, and those of the rooms and tests."""
    found = [ROOT / name for name in (".client/README.md", ".github/CONTRIBUTING.md", "README.md")]
    found += [path for folder in ("dealer", "tests") for path in (ROOT / folder).rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def pages() -> list[Page]:
    """The pages of all documents, in the order of `PLACES`; links are still those of the files."""
    order = list(PLACES)
    known = sorted(
        documents(), key=lambda document: order.index(document) if document in order else len(order)
    )
    return [page for source in known for page in _pages(source)]


def _pages(source: str) -> Iterator[Page]:
    text = (ROOT / source).read_text(encoding="utf-8")
    place = PLACES.get(source) or f"how-to/{_name(source)}"
    if isinstance(place, str):
        yield Page(place, source, text)
        return
    before, sections = markdown.sections(text)
    yield Page(place[""], source, before)
    for title, section in sections:
        name = place.get(title) or f"how-to/{markdown.anchor(title)}"
        yield Page(name, source, markdown.promoted(section))


def _name(source: str) -> str:
    """A page's name of a document without a place: its room, or its own name."""
    path = Path(source)
    return path.parent.name if path.stem == "README" else path.stem.lower().replace("_", "-")
