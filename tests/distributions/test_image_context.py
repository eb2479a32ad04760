"""What the image is built of: the files that the Dockerfile copies, the same at every build."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import re
import tarfile
from pathlib import Path

import pytest

from dealer import __version__
from tests.distributions.tools import ROOT, copied_tree, source_files

COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether .dockerignore excludes a file: by the last pattern of it or of a folder above it."""
    parts = path.split("/")
    above = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    found = False
    for pattern in patterns:
        wanted, form = pattern.startswith("!"), pattern.removeprefix("!")
        if form.startswith("**/"):
            matches = any(fnmatch.fnmatchcase(part, form[3:]) for part in parts)
        else:
            matches = any(fnmatch.fnmatchcase(one, form) for one in above)
        found = not wanted if matches else found
    return found


def context(tree: Path) -> dict[str, Path]:
    lines = (tree / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    paths = (path for path in sorted(tree.rglob("*")) if path.is_file())
    names = ((str(path.relative_to(tree)), path) for path in paths)
    return {name: path for name, path in names if not ignored(name, patterns)}


def archived(tree: Path) -> str:
    """The hash of the context as an archive without times and owners."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in context(tree).items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return hashlib.sha256(stream.getvalue()).hexdigest()


@pytest.mark.slow
def test_two_contexts_have_the_same_bytes(tmp_path: Path) -> None:
    first = copied_tree(tmp_path / "first", modified=1_700_000_000)
    second = copied_tree(tmp_path / "second", modified=1_600_000_000)
    (second / ".secrets").mkdir()
    (second / ".secrets" / "owner_password").write_text("secret")
    (second / "dealer.db").write_bytes(b"SQLite format 3")
    (second / ".venv" / "bin").mkdir(parents=True)
    (second / ".venv" / "bin" / "python").write_bytes(b"")
    assert archived(first) == archived(second)
    (second / "dealer" / "version.py").write_text("another")
    assert archived(first) != archived(second)


def test_the_context_has_what_the_image_copies_and_no_more() -> None:
    copied = [
        source
        for sources in re.findall(r"^ +COPY (?!--from)(.+) \S+$", COMPOSE, re.MULTILINE)
        for source in sources.split()
    ]
    assert len(copied) == 6
    patterns = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for path in source_files():
        wanted = any(path == one or path.startswith(f"{one}/") for one in copied)
        assert ignored(path, [one for one in patterns if one[:1] != "#"]) is not wanted, path


def test_the_image_says_what_it_is() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]+)"', COMPOSE))
    assert set(labels) == {
        "title", "description", "version", "licenses", "vendor", "base.name", "base.digest",
    }  # fmt: skip
    assert (labels["version"], labels["licenses"]) == (__version__, "MIT AND CC0-1.0")
    bases = set(re.findall(r"^ +FROM (\S+)@(\S+)", COMPOSE, re.MULTILINE))
    named = labels["base.name"].removeprefix("docker.io/library/")
    assert bases == {(named, labels["base.digest"])}
