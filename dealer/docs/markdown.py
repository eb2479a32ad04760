"""Parts of Markdown texts: headings with GitHub's anchors, links, sections, tables.

Fenced code is never changed, and a `#` or a link in it is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

_FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$\n?", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#+) (.+?)[ \t]*$", re.MULTILINE)


class Section(NamedTuple):
    """A heading of level 2 with all that follows it; `text` begins with the heading."""

    title: str
    text: str


def anchor(title: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", _plain(title).lower()).replace(" ", "-")


def title(text: str) -> str:
    """The first heading."""
    for level, found in _headings(text):
        if level == 1:
            return found
    raise ValueError("a document begins with a heading of level 1")


def anchors(text: str) -> set[str]:
    """The anchors of all headings."""
    return {anchor(found) for _, found in _headings(text)}


def sections(text: str) -> tuple[str, list[Section]]:
    """What precedes the first heading of level 2, and the sections."""
    masked = _FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = [match.start() for match in _HEADING.finditer(masked) if len(match[1]) == 2]
    ends = [*starts[1:], len(text)]
    found = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return text[: min(starts, default=len(text))], [
        Section(heading.partition("\n")[0].removeprefix("## ").strip(), heading)
        for heading in found
    ]


def promoted(text: str) -> str:
    """The text with every heading one level higher, so that a section is a page."""
    return outside_code(text, lambda part: _HEADING.sub(lambda m: f"{m[1][1:]} {m[2]}", part))


def map_links(text: str, change: Callable[[str], str]) -> str:
    """The text with the target of every link and picture changed."""

    def changed(part: str) -> str:
        pieces = re.split(r"(`[^`\n]+`)", part)  # every second one is code
        pieces[::2] = [
            _LINK.sub(lambda found: f"]({change(found[1])})", piece) for piece in pieces[::2]
        ]
        return "".join(pieces)

    return outside_code(text, changed)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with the parts between fenced blocks changed."""
    found: list[str] = []
    at = 0
    for block in _FENCED.finditer(text):
        found += [change(text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*found, change(text[at:])])


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of the first table in a text, without its heading."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def table(heading: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """A table; a cell's line breaks become spaces, and bars are escaped."""
    lines = [" | ".join(heading), "|".join("---" for _ in heading)]
    lines += [" | ".join(_cell(cell) for cell in row) for row in cells]
    return "".join(f"| {line} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _plain(title: str) -> str:
    """A heading without the marks of Markdown."""
    return re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", title)


def _headings(text: str) -> Iterator[tuple[int, str]]:
    for match in _HEADING.finditer(_FENCED.sub("", text)):
        yield len(match[1]), match[2]
