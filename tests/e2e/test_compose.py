"""docker-compose.yml, checked with the programs that read it; no container engine is needed."""

from __future__ import annotations

import re
import shutil
import tomllib
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.harness.composed import NODES, composed
from tests.harness.installed import missing
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="composed")
def composed_() -> dict[str, Any]:
    return composed()


def test_services_start_in_order(composed) -> None:
    services = composed["services"]
    assert set(services) == {
        "postgres", "roles", "migrate", "rights", "dealer-1", "dealer-2", "proxy", "prometheus",
        "dump", "backup",
    }  # fmt: skip
    backup = services["backup"]["depends_on"]["dump"]["condition"]
    assert backup == "service_completed_successfully"
    assert services["dump"]["profiles"] == services["backup"]["profiles"] == ["backup"]
    assert services["prometheus"]["profiles"] == ["metrics"]
    assert services["roles"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    # While an empty volume is initialised, a temporary server answers on the socket.
    assert "-h" in services["postgres"]["healthcheck"]["test"]
    order = ("roles", "migrate", "rights")
    for earlier, later in (*pairwise(order), *(("rights", node) for node in NODES)):
        waits = services[later]["depends_on"][earlier]["condition"]
        assert waits == "service_completed_successfully", later


def test_every_image_is_pinned_by_its_digest(composed) -> None:
    named = [
        service["image"] for service in composed["services"].values() if "build" not in service
    ]
    named += re.findall(r"^FROM (\S+)", dockerfile(composed), re.MULTILINE)
    for image in named:
        tag = r"[\w./-]+:v?\d+\.\d+(\.\d+)?(-\w+)*"
        assert re.fullmatch(rf"{tag}@sha256:[0-9a-f]{{64}}", image), image


def test_each_service_has_only_the_privileges_that_it_needs(composed) -> None:
    for name, service in composed["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        if name in ("postgres", "roles", "rights"):  # the other images name a user themselves
            assert service["user"] == "postgres", name
    user = composed["services"]["dump"]["user"]
    assert re.findall(r"^USER (\d+)$", dockerfile(composed), re.MULTILINE) == [user]
    assert re.search(r"^USER [1-9]\d+$", dockerfile(composed), re.MULTILINE)
    published = {name for name, service in composed["services"].items() if service.get("ports")}
    assert published == {"proxy", "prometheus"}
    (port,) = composed["services"]["prometheus"]["ports"]
    assert port["host_ip"] == "127.0.0.1"


def test_each_service_has_limits_and_a_log_that_does_not_fill_the_disk(composed) -> None:
    for name, service in composed["services"].items():
        assert int(service["mem_limit"]) >= 2**28, name
        assert float(service["cpus"]) >= 1, name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
        if service.get("restart") == "unless-stopped" and name != "prometheus":
            assert service["healthcheck"]["test"], name


def test_each_container_has_only_the_secrets_that_it_needs(composed) -> None:
    every = ["node_password", "owner_password", "postgres_password"]
    given = {
        name: sorted(secret["source"] for secret in service["secrets"])
        for name, service in composed["services"].items()
        if service.get("secrets")
    }
    assert given == {
        "postgres": ["postgres_password"],
        "roles": every,
        "migrate": ["owner_password"],
        "rights": every,
        "dump": ["owner_password"],
        "backup": ["owner_password"],
        "dealer-1": ["node_password"],
        "dealer-2": ["node_password"],
    }


def test_a_read_only_container_gets_its_configuration_as_a_file(composed) -> None:
    """Compose cannot start it with inline content or content from the environment."""
    for name, source in (composed["configs"] | composed["secrets"]).items():
        assert set(source) <= {"name", "file"}, name
    for source in composed["configs"].values():
        assert Path(source["file"]).is_file()


def test_the_image_has_nothing_of_the_machine_that_built_it(composed) -> None:
    """A `$` of the Dockerfile is written twice, because Compose substitutes a single one."""
    assert "ENV PATH=/dealer/bin:$PATH " in dockerfile(composed)


def test_no_secret_is_in_the_file_or_in_an_environment(composed) -> None:
    for service in composed["services"].values():
        for variable, value in (service.get("environment") or {}).items():
            named = "PASSWORD" in variable or "KEY" in variable
            assert not named or variable.endswith("_FILE"), variable
            assert not re.search(r"://[^@/]*:[^@/]*@", str(value)), variable
    assert all("file" in secret for secret in composed["secrets"].values())


def test_a_linter_accepts_the_image(composed) -> None:
    program = shutil.which("hadolint") or missing("hadolint is not installed")
    output_of(program, "-", input=dockerfile(composed))


def test_the_files_that_the_image_copies_exist(composed) -> None:
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile(composed), re.MULTILINE):
        for path in source.split():
            assert (ROOT / path).exists(), path


def test_pip_installs_only_locked_packages_and_the_project(composed) -> None:
    installs = re.findall(r"/bin/pip ([^&\\\n]+)", dockerfile(composed))
    assert len(installs) == 4
    for install in installs:
        hashed = "--require-hashes -r /source/" in install
        assert hashed or "--no-deps" in install, install
        assert hashed or "--no-build-isolation" in install or "--no-index" in install, install
    assert "PIP_ONLY_BINARY=:all:" in dockerfile(composed), (
        "the build of a source package is not locked"
    )


def locked(name: str) -> dict[str, Requirement]:
    """The requirements of a lock file by name: each has one version, hashes and no URL."""
    text = (ROOT / ".compose" / name).read_text(encoding="utf-8")
    assert "://" not in text
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    found: dict[str, Requirement] = {}
    for line in text.replace("\\\n", "").splitlines():
        head, *hashes = re.split(r"\s+--hash=", line.strip())
        requirement = Requirement(head)
        assert [each.operator for each in requirement.specifier] == ["=="], head
        assert hashes, head
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), head
        found[canonicalize_name(requirement.name)] = requirement
    return found


def in_the_image(requirement: Requirement, extra: str = "") -> bool:
    environment = {
        "python_version": "3.13", "python_full_version": "3.13.15", "sys_platform": "linux",
        "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "extra": extra,
    }  # fmt: skip
    return requirement.marker is None or requirement.marker.evaluate(environment)


def _any_version(requirement: Requirement) -> Requirement:
    requirement.specifier = SpecifierSet()
    return requirement


def test_every_package_of_the_image_is_locked_with_its_hashes() -> None:
    """The project's requirements, their dependencies, and the build requirements of its wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lock = locked("requirements.txt")
    needed = [Requirement(each) for each in project["project"]["dependencies"]]
    seen = set()
    while needed:
        requirement = needed.pop()
        name = canonicalize_name(requirement.name)
        assert name in lock, f"refresh the lock: {name} is missing"
        (version,) = (each.version for each in lock[name].specifier)
        assert requirement.specifier.contains(version), f"refresh the lock: {requirement}"
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                installed = distribution(name)
                further = [Requirement(each) for each in installed.requires or ()]
                if installed.version != version:
                    # A release after the lock may want other versions, but hardly other packages.
                    further = [_any_version(each) for each in further]
                needed += [each for each in further if in_the_image(each, extra)]
    lock = locked("build-requirements.txt")
    for each in project["build-system"]["requires"]:
        requirement = Requirement(each)
        (version,) = (one.version for one in lock[requirement.name].specifier)
        assert requirement.specifier.contains(version)


def dockerfile(composed: dict[str, Any]) -> str:
    text: str = composed["services"]["migrate"]["build"]["dockerfile_inline"]
    # `config` prints a Compose file, in which $$ is an escaped $.
    return text.replace("$$", "$")
