"""The import-linter contracts in pyproject.toml hold, and rules that they cannot express.

The contracts check layers, forbidden modules and circles. Here: circles of files that contain a
package's own module, clocks and randomness by attribute, that verifying needs no server, and the
rules of CONTRIBUTING.md about files and folders.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.harness.programs import output_of

ROOT = Path(__file__).parents[1]
DEALER = ROOT / "dealer"
FILES = sorted(DEALER.rglob("*.py"))

PURE = (["errors"], ["game"], ["proof"], ["history"])
ROOMS_WITH_CLOCKS = ("service", "client", "lab")
CLOCKS_AND_RANDOMNESS = {
    ("os", "urandom"),
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
}  # fmt: skip

FOLDER_MAX = 25
EVENTLOG_MAX = 32
FILE_MIN = 60
NAMES = {"__init__.py", "__main__.py"}  # Python's, the same in every folder


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("dealer", include_external_packages=True)


def pure(graph: grimp.ImportGraph) -> list[str]:
    """The modules of the pure rooms."""
    return sorted(module for module in graph.modules if module.split(".")[1:2] in PURE)


def circle(imports: dict[str, set[str]]) -> list[str]:
    """The modules of one import circle in their order; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_the_contracts_hold() -> None:
    """`lint-imports` prints the imports that break a contract."""
    output_of(
        sys.executable,
        "-c",
        "import sys, importlinter.cli as cli; sys.exit(cli.lint_imports())",
        cwd=ROOT,
    )


def test_no_circle_of_files(graph: grimp.ImportGraph) -> None:
    """Also through `__init__.py` files, which the contract `acyclic` does not compare."""
    ours = {module for module in graph.modules if module.split(".")[0] == "dealer"}
    imports = {module: graph.find_modules_directly_imported_by(module) & ours for module in ours}
    assert circle(imports) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_pure_rooms_need_only_cryptography(graph: grimp.ImportGraph) -> None:
    """They import only the standard library and each other."""
    needed = {
        target.split(".")[0]
        for module in pure(graph)
        for target in graph.find_modules_directly_imported_by(module)
    }
    assert needed - sys.stdlib_module_names == {"dealer", "cryptography"}


def clocks_and_randomness(source: str) -> Iterator[tuple[str, str]]:
    """Attributes such as `os.urandom` that a source uses; their modules have harmless uses too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used = (node.value.id, node.attr)
            if used in CLOCKS_AND_RANDOMNESS:
                yield used


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEALER)))
def test_clocks_and_randomness_are_read_in_their_rooms(path: Path) -> None:
    if path.relative_to(DEALER).parts[0] not in ROOMS_WITH_CLOCKS:
        assert list(clocks_and_randomness(path.read_text(encoding="utf-8"))) == []


def test_a_clock_is_found() -> None:
    assert list(clocks_and_randomness("import time\nnow = time.time()")) == [("time", "time")]
    assert list(clocks_and_randomness("import time\nnow = time.monotonic()")) == []


def test_verifying_needs_no_server(graph: grimp.ImportGraph) -> None:
    """A new interpreter imports the pure rooms and loads no other dependency of the project."""
    modules = pure(graph)
    assert len(modules) > len(PURE)
    program = (
        "import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = output_of(sys.executable, "-c", program, cwd=ROOT)
    server = {"alembic", "asyncpg", "aiosqlite", "msgspec", "prometheus_client", "sqlalchemy"}
    assert set(done.split()) & (server | {"websockets", "numpy", "rich", "click"}) == set()


def test_every_room_is_in_a_contract() -> None:
    """Every room is in the layers or next to them; the imports of another one are not checked."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {each["id"]: each for each in project["tool"]["importlinter"]["contracts"]}
    layers = " ".join([*contracts["rooms"]["layers"], *contracts["side-rooms"]["source_modules"]])
    known = set(re.findall(r"[\w.]+", layers))
    rooms = {path.parent.name for path in DEALER.glob("*/__init__.py")}
    rooms |= {path.stem for path in DEALER.glob("*.py")} - {"__init__", "__main__"}
    assert {f"dealer.{room}" for room in rooms} <= known


def names_without_a_place(paths: Iterable[Path]) -> set[str]:
    """The names that more than two of the files have: it is not clear which one is meant."""
    names = Counter(path.name for path in paths)
    return {name for name, times in names.items() if times > 2} - NAMES


def full_folders(paths: Iterable[Path], most: int) -> set[str]:
    """The folders in which more files lie than one can keep in view."""
    folders = Counter(str(path.parent) for path in paths)
    return {folder for folder, files in folders.items() if files > most}


def crumbs(lines: dict[str, int], importers: dict[str, set[str]]) -> list[str]:
    """Short modules that one other module of the same room imports: they belong into that one."""
    found = []
    for module, length in lines.items():
        importing = importers[module]
        rooms = {".".join(each.split(".")[:2]) for each in importing | {module}}
        if length < FILE_MIN and len(importing) == 1 and len(rooms) == 1:
            found.append(module)
    return found


def test_files_and_folders_are_ones_that_one_can_walk(graph: grimp.ImportGraph) -> None:
    assert names_without_a_place(FILES) == set()
    assert full_folders(FILES, FOLDER_MAX) == set()
    assert len(list((DEALER / "eventlog").rglob("*.py"))) <= EVENTLOG_MAX
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in FILES
        if path.name not in NAMES and path.parent != DEALER
    }
    lines = {
        module: path.read_text(encoding="utf-8").count("\n")
        for module, path in modules.items()
        if module in graph.modules  # examples are programs of their own
    }
    importers = {module: graph.find_modules_that_directly_import(module) for module in lines}
    assert crumbs(lines, importers) == []


def test_crumbs_are_found() -> None:
    rooms = [Path(f"{room}/index.py") for room in "abc"]
    assert names_without_a_place(rooms) == {"index.py"}
    assert names_without_a_place(rooms[:2]) == set()
    assert names_without_a_place(Path(f"{room}/__init__.py") for room in "abc") == set()
    assert full_folders([Path("a/1.py"), Path("a/2.py"), Path("b/1.py")], 1) == {"a"}
    lines = {"dealer.a.x": FILE_MIN - 1}
    assert crumbs(lines, {"dealer.a.x": {"dealer.a.y"}}) == ["dealer.a.x"]
    assert crumbs(lines, {"dealer.a.x": {"dealer.b.y"}}) == []  # a door to another room
    assert crumbs(lines, {"dealer.a.x": {"dealer.a.y", "dealer.a.z"}}) == []
    assert crumbs({"dealer.a.x": FILE_MIN}, {"dealer.a.x": {"dealer.a.y"}}) == []
