"""`dealer/web` as an npm package: linted, packed, installed, imported and type-checked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dealer import __version__
from dealer.gateway.pages.static_files import StaticFiles
from tests.harness.installed import missing
from tests.harness.programs import output_of
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
WEB = ROOT / "dealer" / "web"
PACKAGES = ROOT / "build" / "node_modules"
PROGRAM = """
import { VERSION, connect, memoryStore } from "dealer-web";
import { linesOf, reportLines, verify, type Report } from "dealer-web/verify.js";
import { sha256 } from "dealer-web/verify";

const report: Report = await verify(linesOf(new TextEncoder().encode("{}\\n")));
console.log(VERSION, typeof connect, sha256(new Uint8Array()).length);
console.log(memoryStore().get("a") ?? null);
console.log(report.fault?.check, reportLines(report).length > 7, report.swaps.map(({ i }) => i));
// @ts-expect-error there is no such check
console.log(report.fault?.check === "luck");
"""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a program prints; the test fails if the program does."""
    return output_of(*command, cwd=folder, timeout=60)


def tool(package: str, script: str) -> list[str | Path]:
    path = PACKAGES / package / script
    if not path.exists():
        missing(f"{package} is not installed (npm install --prefix build {package})")
    return [node(), path]


@pytest.fixture(scope="module")
def npm() -> str:
    return shutil.which("npm") or missing("npm is not installed")


@pytest.fixture(scope="module")
def packed(npm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive that `npm publish` would send."""
    folder = tmp_path_factory.mktemp("packed")
    (name,) = run([npm, "pack", WEB, "--silent"], folder).split()
    return folder / name


@pytest.fixture(scope="module")
def project(npm: str, packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the package is installed; it has no dependencies."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    run([npm, "install", packed, "--offline", "--no-audit", "--no-fund", "--silent"], folder)
    return folder


def test_linters_of_packages_accept_it(packed: Path) -> None:
    run([*tool("publint", "src/cli.js"), packed, "--strict"], packed.parent)
    types = tool("@arethetypeswrong/cli", "dist/index.js")
    run([*types, packed, "--profile", "esm-only", "--no-color"], packed.parent)


def test_it_has_the_client_the_verifier_and_nothing_of_the_pages(project: Path) -> None:
    installed = project / "node_modules" / "dealer-web"
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    modules = {f"client/{path.name}" for path in (WEB / "client").glob("*.js")}
    assert files == modules | {
        "client.js", "client.d.ts", "verify.js", "verify.d.ts",
        "CLIENT.md", "GENERATED.md", "LICENSE", "PROTOCOL.md", "README.md", "package.json",
    }  # fmt: skip
    assert (WEB / "LICENSE").read_bytes() == (ROOT / "dealer" / "LICENSE").read_bytes()


@pytest.mark.parametrize(
    "how", [("nodenext", "nodenext"), ("esnext", "bundler")], ids=["node", "bundler"]
)
def test_a_program_type_checks_strictly_and_runs(project: Path, how: tuple[str, str]) -> None:
    (project / "program.ts").write_text(PROGRAM)
    module, resolution = how
    run(
        [*tool("typescript", "bin/tsc"), "--strict", "--target", "es2022", "--lib", "es2023,dom",
         "--types", "", "--module", module, "--moduleResolution", resolution, "program.ts"],
        project,
    )  # fmt: skip
    printed = run([node(), "program.js"], project)
    assert printed.splitlines() == [f"{__version__} function 32", "null", "form true []", "false"]


def test_the_verifier_is_a_command(project: Path) -> None:
    done = subprocess.run(
        [node(), project / "node_modules/.bin/dealer-verify", project / "package.json"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert "(form)" in done.stdout


def test_every_name_of_the_verifier_has_its_type() -> None:
    printed = run(
        [node(), "-e", 'import("./verify.js").then((all) => console.log(Object.keys(all).join()))'],
        WEB,
    )
    types = (WEB / "verify.d.ts").read_text("utf-8")
    declared = re.findall(r"^export (?:function|class|const) (\w+)", types, re.MULTILINE)
    assert sorted(declared) == sorted(printed.strip().split(","))


def test_one_version() -> None:
    assert json.loads((WEB / "package.json").read_text("utf-8"))["version"] == __version__
    assert f'export const VERSION = "{__version__}";' in (WEB / "verify.js").read_text("utf-8")
    compose = (ROOT / "docker-compose.yml").read_text("utf-8")
    assert f"image: dealer:{__version__}\n" in compose


def test_the_client_in_one_file_has_the_same_names(tmp_path: Path) -> None:
    """The script at the address with the version."""
    for address, file in StaticFiles().versioned.items():
        (tmp_path / address[1:].replace(".js", ".mjs")).write_bytes(file.data)
    program = f"""
      const names = async (path) => Object.keys(await import(path)).sort().join();
      const own = "{WEB.as_uri()}/";
      for (const one of ["client", "verify"]) {{
        const alone = await names(`./${{one}}-{__version__}.mjs`);
        console.log(alone === (await names(`${{own}}${{one}}.js`)), alone.includes("VERSION"));
      }}"""
    (tmp_path / "program.mjs").write_text(program)
    assert run([node(), "program.mjs"], tmp_path) == "true true\ntrue true\n"
