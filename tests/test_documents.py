"""Links, file names and commands in the documents are right, and the README stays short."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / ".client" / "README.md", ROOT / ".github" / "CONTRIBUTING.md"]
    + [path for folder in ("dealer", "tests") for path in (ROOT / folder).rglob("*.md")]
)
CODE = re.compile(r"```.*?```", re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(
    r"(?:^|(?<=\s))(?:dealer|tests|migrations|\.client|\.compose|\.kubernetes|\.ci)/[\w./-]+(?=$|\s|::)"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def links(text: str) -> Iterator[tuple[str, str]]:
    """Path and anchor of each link to a file of the repository; both may be empty."""
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", text)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def paths(text: str) -> list[str]:
    """Paths of the repository in inline code."""
    return [path for code in INLINE.findall(CODE.sub("", text)) for path in PATH.findall(code)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links(document: Path) -> None:
    for path, anchor in links(document.read_text(encoding="utf-8")):
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{path}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_file_names(document: Path) -> None:
    """Paths in backticks exist, also as arguments of a command."""
    named = paths(document.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_wrong_link_is_found() -> None:
    assert list(links("[a](b.md#c) [d](https://example.org) ```\n[e](f)\n```")) == [("b.md", "c")]
    assert anchors("# What a bundle proves, and not\n## SQL") == {
        "what-a-bundle-proves-and-not",
        "sql",
    }
    text = "`dealer/game/tape.py`, `tape.py` and `python tests/bench 5`"
    assert paths(text) == ["dealer/game/tape.py", "tests/bench"]


def modules_without_a_place(text: str) -> set[str]:
    """The modules that ARCHITECTURE.md does not name in the entry of their folder."""
    entries = dict(re.findall(r"^- \*\*`(\S+)/`\*\* (.*(?:\n  .*)*)", text, re.MULTILINE))
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "dealer").rglob("*.py")
        if not path.name.startswith("__") and path.parent.name != "examples"
        if f"`{path.stem}`" not in entries.get(folder_of(path), "")
    }


def names_without_a_module(text: str) -> set[str]:
    """The modules that ARCHITECTURE.md names in the entry of a folder, and that are not there."""
    named = re.findall(r"^- \*\*`(\S+)/`\*\* (.*(?:\n  .*)*)", text, re.MULTILINE)
    return {
        f"{folder}/{name}"
        for folder, entry in named
        for name in re.findall(r"(?:^|; |, |\. |\n  )`([a-z_]+)`", entry)
        if not list((ROOT / "dealer" / folder.removeprefix("dealer")).glob(f"{name}*"))
    }


def folder_of(path: Path) -> str:
    return str(path.parent.relative_to(ROOT)).removeprefix("dealer/")


def test_every_module_is_in_the_list_of_files() -> None:
    text = (ROOT / "dealer" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert modules_without_a_place(text) == set()
    without = text.replace("`canonical`", "")
    assert modules_without_a_place(without) == {"dealer/proof/canonical.py"}
    assert names_without_a_module(text) == set()
    assert names_without_a_module(text.replace("`canonical`", "`gone`")) == {"proof/gone"}


def test_the_readme_is_short_and_has_its_commands() -> None:
    """Scripts run the one line under each of these headings."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for heading in ("Start", "Test"):
        assert re.search(rf"^## {heading}\n\n```sh\n[^\n]+\n```$", text, re.MULTILINE), heading


def test_the_licence_is_distributed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT"
    for path in project["license-files"]:
        assert "MIT License" in (ROOT / path).read_text(encoding="utf-8")
