"""The script of a release, whole: builds have the same bytes, and every file installs and plays.

It reaches the package registries, as `.ci/run` does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from dealer import __version__
from tests.distributions.tools import PYTHON, ROOT, python_with, source_files
from tests.harness.installed import missing
from tests.harness.programs import output_of

NAMING = (
    ".deploy/Dockerfile", ".kubernetes/migrate.yml", ".kubernetes/postgres.yml",
    ".kubernetes/sqlite.yml", "dealer/version.py", "dealer/web/package.json",
    "dealer/web/verify.js", "docker-compose.yml",
)  # fmt: skip
"""What has the version, but for examples in documents."""

SCRIPT = ROOT / ".ci" / "release"
IMAGE = f"registry.example/dealer@sha256:{'0f' * 32}"


def release(*arguments: str | Path, script: Path = SCRIPT, **environment: str) -> str:
    return output_of(script, *arguments, env=os.environ | environment, timeout=800)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of this checkout, for an image of this name."""
    if shutil.which("npm") is None or not PYTHON.exists():
        missing("npm or build/tools is not installed (see .ci/run)")
    folder = tmp_path_factory.mktemp("release") / "files"
    release("build", folder, IMAGE)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_another_build_in_another_clone_has_the_same_bytes(files: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for path in source_files():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, clone / path)
    for command in (("init", "-q"), ("add", "-A")):
        output_of("git", *command, cwd=clone)
    release("build", tmp_path / "again", IMAGE, script=clone / ".ci" / "release")
    sums = (files / "SHA256SUMS").read_text("utf-8")
    assert sums == (tmp_path / "again" / "SHA256SUMS").read_text("utf-8")
    assert {line.split()[1].replace(__version__, "V") for line in sums.splitlines()} == {
        "NOTES.md",
        "dealer-compose-V.tar.gz",
        "dealer-documents-V.tar.gz",
        "dealer-image-V.cdx.json",
        "dealer-kubernetes-V.tar.gz",
        "dealer-web-V.tgz",
        "dealer_client-V-py3-none-any.whl",
        "dealer_client-V.tar.gz",
        "dealer_server-V-py3-none-any.whl",
        "dealer_server-V.tar.gz",
    }


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_every_file_installs_without_a_clone_and_plays(files: Path, tmp_path: Path) -> None:
    uv = PYTHON.with_name("uv")
    if not uv.exists():
        missing("uv is not installed (build/tools/bin/pip install uv)")
    folder = tmp_path / "downloaded"
    shutil.copytree(files, folder)
    said = release("check", folder, UV=str(uv))
    for each in ("wheel", "sdist", "wheel by uv"):
        assert f"the server's {each} plays" in said
    for each in ("the client's whl", "the client's tar.gz", "the npm package"):
        assert f"{each} plays" in said
    (folder / "NOTES.md").write_text("changed")
    done = subprocess.run([SCRIPT, "check", folder], capture_output=True)
    assert done.returncode != 0


@pytest.mark.slow
def test_manifests_and_compose_name_the_image_by_its_digest(files: Path, tmp_path: Path) -> None:
    for name in ("kubernetes", "compose"):
        with tarfile.open(files / f"dealer-{name}-{__version__}.tar.gz") as archive:
            archive.extractall(tmp_path / name, filter="data")
    manifests = sorted((tmp_path / "kubernetes").glob("*.yml"))
    named = re.findall(
        "image: (.*dealer.*)", "".join(file.read_text("utf-8") for file in manifests)
    )
    assert set(named) == {IMAGE}
    output_of(*python_with("kubernetes_validate", "kubernetes-validate"), "--strict", *manifests)
    (folder,) = (tmp_path / "compose").iterdir()
    compose = shutil.which("docker-compose") or missing("docker-compose is not installed")
    parsed = json.loads(output_of(compose, "config", "--format", "json", cwd=folder))
    assert parsed["services"]["dealer-1"]["image"] == IMAGE
    assert not [name for name, service in parsed["services"].items() if "build" in service]
    for config in parsed["configs"].values():
        assert Path(config["file"]).is_file()


def test_a_tag_is_refused_while_something_says_that_nothing_is_published() -> None:
    for tag, said in (("v0.0.1", "is not v"), (f"v{__version__}", "dealer/CHANGELOG.md has no")):
        done = subprocess.run([SCRIPT, "tag", tag], capture_output=True, encoding="utf-8")
        assert done.returncode == 1
        assert said in done.stderr


def test_one_command_raises_the_version_everywhere(tmp_path: Path) -> None:
    for path in source_files():
        if not path.startswith("tests/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)
    here = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    named = [path for path in NAMING if here.search((tmp_path / path).read_text("utf-8"))]
    assert named == list(NAMING)
    script = tmp_path / ".ci" / "release"
    assert (
        "is no version"
        in subprocess.run(
            [script, "version", "v2"], capture_output=True, encoding="utf-8", check=False
        ).stderr
    )
    release("version", "12.3.4", script=script)
    for path in NAMING:
        text = (tmp_path / path).read_text("utf-8")
        assert ("12.3.4" in text, here.findall(text)) == (True, []), path
    changed = {
        path
        for path in source_files()
        if not path.startswith("tests/")
        and (tmp_path / path).read_bytes() != (ROOT / path).read_bytes()
    }
    assert changed == set(NAMING)


@pytest.mark.slow
def test_links_of_a_readme_lead_to_the_repository(files: Path) -> None:
    with zipfile.ZipFile(files / f"dealer_server-{__version__}-py3-none-any.whl") as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        text = wheel.read(name).decode()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert f"https://cards.example.org/dealer/source/blob/v{__version__}/dealer/THREATS.md" in [
        link.partition("#")[0] for link in links
    ]
    assert not [link for link in links if not link.startswith(("https://", "http://", "#"))]
