"""The commands of GENERATED.md that generate code: it compiles, and reads every example."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway.schema import asyncapi, openrpc
from dealer.gateway.schema.documents import Frame, examples, messages
from tests.harness.installed import missing
from tests.harness.npm import BUILD
from tests.harness.programs import output_of
from tests.web.js_verifier import node

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "dealer/web/GENERATED.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```bash\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
PROGRAM = Path(__file__).with_name("generated.mjs")

ASYNCAPI: Any = json.loads(asyncapi())
OPENRPC: Any = json.loads(openrpc())
FRAMES = [(one.type.__name__, one.example) for one in messages() if one.example is not None]
RECEIVED = [(type, frame) for type, frame in FRAMES if not type.endswith("Request")]

TSC = str(BUILD / "node_modules/.bin/tsc")
STRICT = ("--strict", "--target", "es2022", "--module", "commonjs", "--rootDir", ".")


def titles(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            yield schema["title"]
        for one in schema.values():
            yield from titles(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from titles(one)


TITLES = {title.lower() for title in titles(ASYNCAPI["components"]["schemas"])}


def untitled(names: set[str]) -> set[str]:
    """The names of types that no title gave: those of the generator itself, and made-up ones."""
    return {name for name in names if name.lower() not in TITLES}


def package(name: str) -> None:
    """Skip the test, or in CI fail it, without an npm package."""
    node()
    if not (BUILD / "node_modules" / name).is_dir():
        missing(f"not installed: npm install --prefix build {name} (see .ci/run)")


def generated(folder: Path, word: str) -> Path:
    """Run the guide's command that has this word, in a folder with the documents of a server."""
    (command,) = (one for one in COMMANDS if word in one)
    (folder / "asyncapi.json").write_bytes(asyncapi())
    (folder / "openrpc.json").write_bytes(openrpc())
    (folder / "node_modules").symlink_to(BUILD / "node_modules")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(["bash", "-euo", "pipefail", "-c", command], folder, PATH=path, npm_config_offline="true")
    return folder


def run(command: list[str], folder: Path, stdin: str = "", **environment: str) -> str:
    return output_of(*command, input=stdin, cwd=folder, env=os.environ | environment)


def compiled(folder: Path) -> Path:
    """The folder with what the TypeScript compiler makes of the TypeScript files in a folder."""
    files = sorted(path.name for path in folder.glob("*.ts"))
    run([TSC, *STRICT, "--outDir", "js", *files], folder)
    return folder / "js"


def faults_of(kind: str, folder: Path, frames: Any) -> list[str]:
    printed = run([node(), str(PROGRAM), kind, str(folder)], folder, json.dumps(frames))
    found: list[str] = json.loads(printed)
    return found


def type_names(text: str) -> set[str]:
    return set(re.findall(r"^(?:export )?(?:interface|type|enum|class) (\w+)", text, re.MULTILINE))


def as_frames(pairs: list[tuple[str, Frame]]) -> list[dict[str, Any]]:
    return [{"type": type, "frame": frame} for type, frame in pairs]


def of_a_later_release() -> list[tuple[str, Frame]]:
    """The frames that clients receive, with members that this release does not have."""
    new = {"x_new": {"of": ["a", "later", "release"]}}
    return [
        (type, frame | {name: frame[name] | new} | new)
        for type, frame in RECEIVED
        for name in ("result", "params", "error")
        if name in frame
    ]


def test_every_message_has_an_example():
    assert len(FRAMES) == len(messages()) > 80
    assert len(of_a_later_release()) == len(RECEIVED) > 40


@pytest.fixture(scope="module")
def pydantic_file(tmp_path_factory) -> Path:
    if importlib.util.find_spec("datamodel_code_generator") is None:
        missing("datamodel-code-generator is not installed")
    return generated(tmp_path_factory.mktemp("pydantic"), "datamodel-codegen") / (
        "dealer_models.py"
    )


@pytest.fixture(scope="module")
def models(pydantic_file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("dealer_models", pydantic_file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["dealer_models"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["dealer_models"]


def test_the_pydantic_types_are_right(pydantic_file: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", pydantic_file.name]
    assert "no issues found" in run(command, pydantic_file.parent)


def test_the_pydantic_types_have_the_names_of_the_document(pydantic_file: Path) -> None:
    names = {name for name in type_names(pydantic_file.read_text()) if not name.endswith("Payload")}
    assert untitled(names) == {"HouseWsHeaders"}


@pytest.mark.parametrize("pairs", [FRAMES, of_a_later_release()], ids=["now", "later"])
def test_pydantic_reads_and_writes_every_example(models, pairs) -> None:
    for type, frame in pairs:
        read = getattr(models, type).model_validate_json(json.dumps(frame))
        written = read.model_dump_json(by_alias=True, exclude_unset=True)
        assert json.loads(written) == frame, type


def test_an_event_is_of_the_class_of_its_type(models) -> None:
    frame = examples()["event"].frame
    assert frame is not None
    event = models.EventNotification.model_validate_json(json.dumps(frame)).params
    assert type(event.root).__name__ == frame["params"]["type"]


@pytest.fixture(scope="module")
def quicktype_folder(tmp_path_factory) -> Path:
    package("quicktype")
    return generated(tmp_path_factory.mktemp("quicktype"), "npx quicktype")


def test_the_quicktype_types_have_the_names_of_the_document(quicktype_folder: Path) -> None:
    """A union of objects becomes one type, whose parts have the names of their members."""
    names = type_names((quicktype_folder / "dealer.ts").read_text())
    assert untitled(names) == {
        "Convert", "Constant", "OpenedObject", "Part", "Public", "TableElement",
    }  # fmt: skip


def test_quicktype_reads_and_writes_every_example(quicktype_folder: Path) -> None:
    js = compiled(quicktype_folder)
    assert faults_of("quicktype", js, as_frames(FRAMES + of_a_later_release())) == []
    (type, frame) = RECEIVED[0]
    assert faults_of("quicktype", js, as_frames([(type, frame | {"jsonrpc": 2})]))


@pytest.fixture(scope="module")
def modelina_folder(tmp_path_factory) -> Path:
    package("@asyncapi/modelina")
    return generated(tmp_path_factory.mktemp("modelina"), "modelina") / "models"


def test_the_modelina_types_have_the_names_of_the_document(modelina_folder: Path) -> None:
    names = {path.stem for path in modelina_folder.glob("*.ts")}
    assert len(names) > 200
    assert untitled(names) == {"House"}


def test_modelina_reads_and_writes_every_example(modelina_folder: Path) -> None:
    js = compiled(modelina_folder)
    assert faults_of("modelina", js, as_frames(FRAMES + of_a_later_release())) == []


@pytest.fixture(scope="module")
def openrpc_folder(tmp_path_factory) -> Path:
    for name in ("@open-rpc/generator", "@open-rpc/client-js", "@types/lodash"):
        package(name)
    return generated(tmp_path_factory.mktemp("openrpc"), "open-rpc-generator") / "client/typescript"


def test_the_openrpc_types_have_the_names_of_the_document(openrpc_folder: Path) -> None:
    names = type_names((openrpc_folder / "src/index.ts").read_text())
    methods = {re.sub(r"\W|_", "", one["name"]) for one in OPENRPC["methods"]}
    others = {name for name in untitled(names) if name.lower() not in methods}
    union = {name for name in others if name.startswith("AnyOf")}
    assert len(union) == 1, "the generator's own, of all parameters and results"
    assert others - union == {"Options", "Dealer", "AlwaysTrue", "AlwaysFalse"}


def test_the_openrpc_client_sends_and_receives_every_example(openrpc_folder: Path) -> None:
    # Strict by its own tsconfig.json. The map of a line of 600,000 characters would take minutes.
    own = ("--rootDir", "src", "--types", "node", "--skipLibCheck", "--sourceMap", "false")
    run([TSC, *own], openrpc_folder)
    calls = []
    for method in OPENRPC["methods"]:
        frame, answer = examples()[method["name"]]
        assert frame is not None
        assert answer is not None
        call = {"method": method["name"], "params": frame["params"]}
        names = [param["name"] for param in method["params"]]
        calls.append(call | {"names": names, "result": answer["result"]})
    assert faults_of("openrpc", openrpc_folder / "build", calls) == []
    assert faults_of(
        "openrpc",
        openrpc_folder / "build",
        [calls[0] | {"params": {"seat": "1"}, "names": ["seat"]}],
    )
