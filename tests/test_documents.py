"""Links, file names and commands in the documents are right, and the README stays short."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributions import third_party

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / ".client" / "README.md", *(ROOT / ".github").glob("*.md")]
    + [path for folder in ("dealer", "tests") for path in (ROOT / folder).rglob("*.md")]
)
CODE = re.compile(r"```.*?```", re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(
    r"(?:^|(?<=\s))(?:dealer|tests|migrations|\.client|\.compose|\.deploy|\.kubernetes|\.ci)/[\w./-]+(?=$|\s|::)"
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


def listed_files(text: str) -> dict[str, str]:
    """What FILES.md says of each file, by its path in `dealer/` without the suffix."""
    files, folder = {}, ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"##+ (\S+)/", line):
            folder = "" if heading[1] == "dealer" else f"{heading[1]}/"
        elif row := re.fullmatch(r"\| `(\w+)` \| (.+) \|", line):
            files[folder + row[1]] = row[2]
    return files


def wrong_lines(text: str) -> set[str]:
    """Files that FILES.md does not list, or that are gone; and names that are not in their file."""
    listed = listed_files(text)
    there = {
        str(path.relative_to(ROOT / "dealer").with_suffix("")): path
        for path in (ROOT / "dealer").rglob("*.py")
        if path.parent.name != "examples"
    }
    needed = {file for file in there if not Path(file).name.startswith("__")}
    wrong = (needed - listed.keys()) | (listed.keys() - there.keys())
    for file in listed.keys() & there.keys():
        source = there[file].read_text(encoding="utf-8")
        for code in re.findall(r"`([^`]+)`", listed[file]):
            if re.fullmatch(r"[a-z_]+/[a-z_/]+", code):
                if code not in there and not (ROOT / "dealer" / code).is_dir():
                    wrong.add(f"{file}: {code}")
            elif re.fullmatch(r"\w+", code) and not re.search(rf"\b{code}\b", source):
                wrong.add(f"{file}: {code}")
    return wrong


def test_the_list_of_files_is_right() -> None:
    text = (ROOT / "dealer" / "FILES.md").read_text(encoding="utf-8")
    assert wrong_lines(text) == set()
    assert wrong_lines(text.replace("| `canonical` |", "| `gone` |")) == {
        "proof/canonical",
        "proof/gone",
    }
    assert wrong_lines(text.replace("`CloseCode` of", "`ClosingCode` of")) == {
        "gateway/close_codes: ClosingCode"
    }
    assert wrong_lines(text.replace("`gateway/session/seating`", "`gateway/session/seats`")) == {
        "service/identity/seat_claims: gateway/session/seats"
    }


def gone(text: str) -> list[str]:
    """Paths below `dealer/` in inline code, with or without `.py`, that do not exist."""
    named = re.findall(r"`(\w[\w.]*/[\w./]*)`", text)
    parts = [ROOT / "dealer", ROOT]
    return [
        one
        for one in named
        if not any((part / one).exists() or (part / f"{one}.py").exists() for part in parts)
    ]


def test_the_paths_of_the_architecture_are_whole() -> None:
    text = (ROOT / "dealer" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert gone(text) == []
    assert gone(text.replace("`gateway/net/connection`", "`net/connection`")) == ["net/connection"]


def test_the_readme_is_short_and_has_its_commands() -> None:
    """Scripts run the one line under each of these headings."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for heading in ("Start", "Test"):
        assert re.search(rf"^## {heading}\n\n```sh\n[^\n]+\n```$", text, re.MULTILINE), heading


def test_the_licence_is_distributed() -> None:
    """Also where programs look for it, which do not find it in a folder of another name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "MIT AND CC0-1.0"
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in project["license-files"]}
    assert "MIT License" in texts["dealer/web/lean-qr/LICENCE.md"]
    assert "CC0 1.0" in texts["dealer/web/cards/LICENCE.md"]
    for copy in (".github", ".client", "dealer/web"):
        assert (ROOT / copy / "LICENSE").read_text(encoding="utf-8") == texts["dealer/LICENSE"]


def test_the_notice_about_others_is_that_of_the_installed_packages() -> None:
    """Made again by `python -m tests.distributions.third_party`."""
    notice = third_party.NOTICE.read_text(encoding="utf-8")
    head, table = notice[: len(third_party.HEAD)], notice[len(third_party.HEAD) :].splitlines()
    assert head == third_party.HEAD
    assert [row.split(" | ")[0].removeprefix("| ") for row in table] == list(third_party.pinned())
    installed = third_party.rows()
    assert len(installed) > 10
    assert set(installed.values()) <= set(table)
