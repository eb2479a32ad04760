"""The wheels and the source distribution: what is in them, and the same bytes at every build."""

from __future__ import annotations

import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from dealer import __version__
from dealer.version import running_version
from tests.distributions.tools import ROOT, copied_tree, python_with, run
from tests.harness.programs import output_of

pytestmark = pytest.mark.slow

SERVER = f"dealer_server-{__version__}-py3-none-any.whl"
CLIENT = f"dealer_client-{__version__}-py3-none-any.whl"
SOURCE = f"dealer_server-{__version__}.tar.gz"
CLIENT_SOURCE = f"dealer_client-{__version__}.tar.gz"
FILES = (SERVER, CLIENT, SOURCE, CLIENT_SOURCE)


def build(tree: Path, to: Path) -> Path:
    """Wheel and source distribution of server and client of a tree, in the folder `to`."""
    hatchling = [*python_with("hatchling", "hatchling"), "build", "-d", to]
    run(hatchling, cwd=tree)
    run(hatchling, cwd=tree / ".client")
    return to


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = copied_tree(tmp_path_factory.mktemp("first"), modified=1_700_000_000)
    return build(tree, tmp_path_factory.mktemp("built"))


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by path, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


def test_two_builds_have_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Of another copy of the tree, with other times; and of the source distribution."""
    tree = copied_tree(tmp_path / "tree", modified=1_600_000_000)
    again = build(tree, tmp_path / "again")
    for name in FILES:
        assert (built / name).read_bytes() == (again / name).read_bytes(), name
    output_of("tar", "-xzf", built / SOURCE, "-C", tmp_path)
    unpacked = tmp_path / SOURCE.removesuffix(".tar.gz")
    of_source = build(unpacked, tmp_path / "of-source")
    for name in (SERVER, CLIENT):
        assert (built / name).read_bytes() == (of_source / name).read_bytes(), name
    output_of("tar", "-xzf", built / CLIENT_SOURCE, "-C", tmp_path)
    alone = tmp_path / CLIENT_SOURCE.removesuffix(".tar.gz")
    run([*python_with("hatchling", "hatchling"), "build", "-t", "wheel"], cwd=alone)
    assert (built / CLIENT).read_bytes() == (alone / "dist" / CLIENT).read_bytes()


def test_their_metadata_are_right(built: Path) -> None:
    files = [built / name for name in FILES]
    run([*python_with("twine", "twine"), "check", "--strict", *files], NO_COLOR="1")


def test_a_wheel_says_that_it_is_the_code_of_this_checkout(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built / SERVER) as wheel:
        wheel.extractall(tmp_path)
    program = "from dealer.version import running_version; print(running_version())"
    said = output_of(sys.executable, "-c", program, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert said.strip() == running_version()


def test_the_client_is_a_part_of_the_server(built: Path) -> None:
    """In an environment with both, each file is the same."""
    client, server = contents(built / CLIENT), contents(built / SERVER)
    del client["dealer/game/README.md"]  # for those who work on the source
    assert server.items() >= client.items()
    rooms = {name.split("/")[1] for name in client if name.count("/") > 1}
    assert rooms == {"client", "game", "proof"}
    assert {"dealer/py.typed", "dealer/LICENSE"} <= set(client)
    assert not {name for name in server if name.endswith((".pyc", "pyproject.toml"))}
    ours, theirs = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        for folder in (".client", ".")
    )
    assert set(ours["dependencies"]) < set(theirs["dependencies"])
    assert ours["requires-python"] == theirs["requires-python"]


def test_the_client_needs_nothing_of_the_server(built: Path, tmp_path: Path) -> None:
    """Every module of its wheel is imported while all other packages are hidden."""
    with zipfile.ZipFile(built / CLIENT) as archive:
        archive.extractall(tmp_path)
    modules = [
        str(path.relative_to(tmp_path).with_suffix("")).replace("/", ".").removesuffix(".__init__")
        for path in sorted(tmp_path.rglob("*.py"))
    ]
    program = f"""
import importlib, sys
allowed = {{"dealer", "cryptography", "cffi", "_cffi_backend", "websockets"}}
class Hidden:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
for name in {modules!r}: importlib.import_module(name)
import dealer
assert dealer.__file__.startswith({str(tmp_path)!r}), dealer.__file__
dealer.connect, dealer.House
"""
    output_of(sys.executable, "-c", program, cwd=tmp_path)
    assert len(modules) > 50
