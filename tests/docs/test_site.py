"""The site is made by one command, is searchable from the disk, and asks no other host."""

from __future__ import annotations

import json
import re
import shlex
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from dealer.docs.__main__ import build
from dealer.version import __version__
from tests.browser.conftest import FLAGS, chromium
from tests.docs.tutorial import blocks
from tests.harness.programs import output_of
from tests.harness.server_process import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver:PendingDeprecationWarning"),
]

VERSION, EARLIER = __version__, "0.0.9"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command of docs/README.md makes, next to an earlier version."""
    folder = tmp_path_factory.mktemp("made")
    earlier = folder / "site" / EARLIER
    earlier.mkdir(parents=True)
    for name in ("objects.inv", "index.html"):
        (earlier / name).write_text("earlier", encoding="utf-8")
    text = (ROOT / "dealer" / "docs" / "README.md").read_text(encoding="utf-8")
    contributing = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (command,) = (one.text for one in blocks(text) if one.language == "sh")
    assert command in contributing
    _, *arguments, name = shlex.split(command.split("&&")[1])
    printed = output_of(sys.executable, *arguments, str(folder / name), cwd=ROOT)
    assert printed == f"{folder / 'site' / VERSION / 'index.html'}\n"
    return folder / "site"


class Loaded(HTMLParser):
    """What a page loads on its own: scripts, styles, pictures, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":
            self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_no_page_loads_from_another_host(site: Path) -> None:
    pages = sorted((site / VERSION).rglob("*.html"))
    assert len(pages) > 45
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert [one for one in loaded.addresses if re.match(r"(?:[a-z]+:)?//", one)] == [], page
    for style in (site / VERSION).rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", text), style


def test_every_link_between_pages_holds(site: Path) -> None:
    """Also its anchor."""
    texts = {page: page.read_text(encoding="utf-8") for page in (site / VERSION).rglob("*.html")}
    checked = 0
    for page, text in texts.items():
        for link in re.findall(r'<a [^>]*href="([^"]*)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            assert target.exists(), (page, link)
            if anchor and target in texts:
                checked += 1
                assert f'id="{anchor}"' in texts[target], (page, link)
    assert checked > 500


def test_other_versions_are_kept_and_listed(site: Path) -> None:
    assert (site / EARLIER / "index.html").read_text(encoding="utf-8") == "earlier"
    assert json.loads((site / "versions.json").read_text()) == [VERSION, EARLIER]
    assert f"url={VERSION}/index.html" in (site / "index.html").read_text()


async def test_the_search_works_from_the_disk(site: Path) -> None:
    """From the first page, by the keyboard; and the version can be chosen."""
    requests: list[str] = []
    faults: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        page = await browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        await page.goto((site / VERSION / "index.html").as_uri())
        await page.get_by_placeholder("Search").fill("cosignature")
        await page.get_by_placeholder("Search").press("Enter")
        found = page.locator("#search-results li a")
        await expect(found.filter(has_text="Client guide")).to_have_count(1)
        await found.filter(has_text="Client guide").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Client guide")
        async with page.expect_navigation():
            await page.get_by_label("Version").select_option(EARLIER)
        await expect(page.locator("body")).to_have_text("earlier")
        await browser.close()
    assert faults == []
    assert len(requests) > 10
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}


@pytest.mark.parametrize(
    "text",
    [
        "# A page\n\n[a](../../missing.md)\n",
        "# A page\n\n[a](other.md#missing)\n\n```{toctree}\nother\n```\n",
        "# A page\n\n[a](https://example.org/)\n\n```{missing}\n```\n",
        "# A page\n\n[a](other.md)\n",  # which no page lists
    ],
)
def test_a_broken_document_makes_no_site(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file or a heading that is not there, and what else Sphinx warns of."""
    documents = tmp_path / "dealer" / "docs"
    documents.mkdir(parents=True)
    (documents / "index.md").write_text(text, encoding="utf-8")
    (documents / "other.md").write_text("# Missing in the list\n", encoding="utf-8")
    assert not build(tmp_path, tmp_path / "site" / "1")
    said = capfd.readouterr().err
    assert "missing" in said or "other.md: WARNING: document isn't included in any toctree" in said
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_no_version_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with pytest.raises(FileExistsError):
        build(ROOT, tmp_path / "1")
