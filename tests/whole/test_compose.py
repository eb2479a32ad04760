"""What docker-compose.yml says, asked of the programs that will read it; no engine is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.foreign.installed import missing
from tests.whole.composed import composed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="composed")
def composed_() -> dict[str, Any]:
    return composed()


def test_what_is_started_and_after_what(composed) -> None:
    services = composed["services"]
    assert set(services) == {
        "postgres", "migrate", "dealer-1", "dealer-2", "proxy", "prometheus",
    }  # fmt: skip
    assert services["prometheus"]["profiles"] == ["metrics"]
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    for node in ("dealer-1", "dealer-2"):
        waits = services[node]["depends_on"]["migrate"]["condition"]
        assert waits == "service_completed_successfully"


def test_every_image_is_pinned(composed) -> None:
    named = [service["image"] for service in composed["services"].values()]
    named += re.findall(r"^FROM (\S+)", dockerfile(composed), re.MULTILINE)
    for image in named:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-\w+)*", image), image


def test_nobody_may_do_more_than_they_must(composed) -> None:
    for name, service in composed["services"].items():
        if name == "postgres":  # its own image steps down from root, and writes its volume
            continue
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    assert re.search(r"^USER [1-9]\d+$", dockerfile(composed), re.MULTILINE)
    published = {name for name, service in composed["services"].items() if service.get("ports")}
    assert published == {"proxy", "prometheus"}
    (port,) = composed["services"]["prometheus"]["ports"]
    assert port["host_ip"] == "127.0.0.1"


def test_no_secret_stands_in_the_file_or_in_an_environment(composed) -> None:
    for service in composed["services"].values():
        for variable, value in (service.get("environment") or {}).items():
            named = "PASSWORD" in variable or "KEY" in variable
            assert not named or variable.endswith("_FILE"), variable
            assert not re.search(r"://[^@/]*:[^@/]*@", str(value)), variable
    assert all("file" in secret for secret in composed["secrets"].values())


def test_the_image_by_a_linter(composed) -> None:
    program = shutil.which("hadolint")
    if program is None:
        missing("hadolint is not installed")
    linted = subprocess.run(
        [program, "-"], input=dockerfile(composed), capture_output=True, encoding="utf-8"
    )
    assert linted.returncode == 0, linted.stdout


def test_the_image_has_what_the_wheel_is_made_of(composed) -> None:
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile(composed), re.MULTILINE):
        for path in source.split():
            assert (ROOT / path).exists(), path


def dockerfile(composed: dict[str, Any]) -> str:
    text: str = composed["services"]["migrate"]["build"]["dockerfile_inline"]
    return text
