"""Links between documents, as links between pages of the site.

A link to a document becomes one to the page that has its anchor. Any other file of the repository
that a document links to, or shows, is copied into the site under `files/`.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable

from dealer.docs import markdown
from dealer.docs.documents import ROOT, Page

FILES = "files"


class BrokenLink(Exception):
    """A link to a file or an anchor that is not there."""


class Links:
    """The pages by document and anchor. `files` are those that the rewritten texts need."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self.files: set[str] = set()
        self._pages: dict[str, str] = {}
        self._anchors: dict[tuple[str, str], str] = {}
        for page in pages:
            self._pages.setdefault(page.source, page.name)
            for anchor in markdown.anchors(page.text):
                self._anchors.setdefault((page.source, anchor), page.name)

    def rewritten(self, page: Page) -> str:
        """The page's text with links that hold in the site. Raises BrokenLink."""
        return markdown.map_links(page.text, lambda target: self._target(page, target))

    def _target(self, page: Page, target: str) -> str:
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path))
        source = file if path else page.source
        if source in self._pages:
            return self._page(page, source, anchor)
        if not (ROOT / file).is_file():
            raise BrokenLink(f"{page.source}: {target}")
        self.files.add(file)
        return _relative(page, f"{FILES}/{file}")

    def _page(self, page: Page, source: str, anchor: str) -> str:
        found = self._anchors.get((source, anchor)) if anchor else self._pages[source]
        if found is None:
            raise BrokenLink(f"{page.source}: {source} has no heading #{anchor}")
        target = "" if found == page.name else _relative(page, f"{found}.md")
        return f"{target}#{anchor}" if anchor else target or f"{posixpath.basename(found)}.md"


def _relative(page: Page, path: str) -> str:
    return os.path.relpath(path, posixpath.dirname(page.name)).replace(os.sep, "/")
