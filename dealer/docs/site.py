"""One version of the site: its pages are written to a temporary folder and made into HTML there.

Sphinx makes the pages, with the parser MyST for Markdown and the theme Furo: all their scripts,
styles and the search index are files of the site. A warning, such as a broken link, is an error.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from sphinx.application import Sphinx

from dealer.docs.documents import ROOT, Page, pages
from dealer.docs.index import index_page
from dealer.docs.links import BrokenLink, Links
from dealer.docs.reference import COMPLETED, generated
from dealer.docs.versions import MARK, write_versions

_HERE = Path(__file__).parent
_OPTIONS = {
    "extensions": ["myst_parser"],
    "myst_heading_anchors": 6,
    # Excerpts of JSON with an ellipsis, and CSV, are shown without colours.
    "suppress_warnings": ["misc.highlighting_failure"],
    "highlight_language": "text",
    "smartquotes": False,  # would change the hyphens of flags
    "html_theme": "furo",
    "html_static_path": [str(_HERE / "theme")],
    "html_css_files": ["site.css"],
    "html_js_files": ["site.js"],
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_use_index": False,
    "html_permalinks_icon": "#",
    "pygments_style": "friendly",
}


class BrokenSite(Exception):
    """The documents cannot be made into a site: a broken link, or another warning of Sphinx."""


def build(folder: Path, *, version: str) -> Path:
    """Make FOLDER/VERSION, replace an earlier one of that version, and return its first page.

    Raises BrokenSite; the folder is then as it was. A folder that is no version of the site is not
    replaced (FileExistsError).
    """
    target = folder / version
    if target.exists() and not (target / MARK).exists():
        raise FileExistsError(f"{target} is not a version of the site")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        source, made = Path(temporary, "source"), Path(temporary, "site")
        try:
            write_sources(source)
        except BrokenLink as error:
            raise BrokenSite(str(error)) from error
        _run_sphinx(source, made, version)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
    write_versions(folder)
    return target / "index.html"


def write_sources(folder: Path) -> list[Page]:
    """Write every page and the files that they link to. Raises BrokenLink."""
    documents = pages()
    links = Links(documents)
    texts = {document.name: links.rewritten(document) for document in documents}
    for name, complete in COMPLETED.items():
        texts[name] = complete(texts[name])
    made = generated()
    found = [Page(name, "", text) for name, text in [*texts.items(), *made.items()]]
    texts |= made | {"index": index_page(found)}
    for name, text in texts.items():
        _write(folder / f"{name}.md", text)
    _copy(links.files, folder / "files")
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _copy(files: Iterable[str], folder: Path) -> None:
    for file in files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)


def _run_sphinx(source: Path, target: Path, version: str) -> None:
    warnings = StringIO()
    about = {"project": "dealer", "version": version, "release": version}
    app = Sphinx(
        srcdir=source,
        confdir=None,
        outdir=target,
        doctreedir=source.with_name("doctrees"),
        buildername="html",
        confoverrides=_OPTIONS | about | {"html_title": f"dealer {version}"},
        status=None,
        warning=warnings,
        warningiserror=True,
        parallel=1,
    )
    app.build()
    if warnings.getvalue():
        raise BrokenSite(warnings.getvalue())
