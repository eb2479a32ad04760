"""Static checks of the JavaScript: ESLint, TypeScript over JSDoc types, and the import graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from dealer.gateway.pages.static_files import shortened
from tests.harness.installed import missing
from tests.harness.programs import output_of
from tests.web.js_verifier import node

ROOT = Path(__file__).parents[2]
WEB = ROOT / "dealer" / "web"
PACKAGES = ROOT / "build" / "node_modules"
IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?from "(\.[^"]+)";$""", re.MULTILINE)
LAZY_IMPORT = re.compile(r"""(?:await|=>) import\("(\.[^"]+)"\)""")


def run_tool(package: str, program: str, *arguments: str | Path) -> None:
    script = PACKAGES / package / "bin" / program
    if not script.exists():
        missing(f"{package} is not installed (npm install --prefix build, see .ci/run)")
    output_of(node(), script, *arguments, cwd=ROOT)


@pytest.mark.slow
def test_eslint_finds_nothing() -> None:
    config = Path(__file__).with_name("eslint.config.mjs")
    folders = ("dealer/web", "dealer/docs/examples", "tests/web")
    run_tool("eslint", "eslint.js", "--config", config, *folders)


@pytest.mark.slow
def test_types_are_consistent() -> None:
    """Also that the client's classes implement the interfaces of client.d.ts."""
    run_tool("typescript", "tsc", "--project", Path(__file__).with_name("tsconfig.json"))


@pytest.mark.slow
def test_scripts_shortened_are_the_same_programs(tmp_path: Path) -> None:
    """Both have the same tokens, by the parser that ESLint uses."""
    if not (PACKAGES / "acorn").is_dir():
        missing("eslint is not installed (npm install --prefix build, see .ci/run)")
    for script in WEB.rglob("*.js"):
        served = tmp_path / script.relative_to(WEB)
        served.parent.mkdir(parents=True, exist_ok=True)
        served.write_bytes(shortened(script.read_bytes()))
    program = """
      const [, acorn, written, served] = process.argv;
      const { tokenizer } = require(acorn), fs = require("fs");
      const options = { ecmaVersion: "latest", sourceType: "module", allowHashBang: true };
      const tokens = (file) => {
        const text = fs.readFileSync(file, "utf8");
        return [...tokenizer(text, options)].map((one) => text.slice(one.start, one.end)).join(" ");
      };
      const scripts = fs.readdirSync(served, { recursive: true }).filter((one) => /js$/.test(one));
      for (const one of scripts)
        if (tokens(`${written}/${one}`) !== tokens(`${served}/${one}`)) throw new Error(one);
      console.log(scripts.length);"""
    command: list[str | Path] = [node(), "-e", program, PACKAGES / "acorn", WEB, tmp_path]
    assert int(output_of(*command)) > 50


def imports(module: Path) -> Iterator[Path]:
    text = module.read_text("utf-8")
    for found in (*IMPORT.finditer(text), *LAZY_IMPORT.finditer(text)):
        yield (module.parent / found[1]).resolve()


def import_graph() -> dict[Path, set[Path]]:
    graph = {module.resolve(): set(imports(module)) for module in WEB.rglob("*.js")}
    assert sum(map(len, graph.values())) > 100
    return graph


def test_modules_import_each_other_without_cycles() -> None:
    TopologicalSorter(import_graph()).prepare()


def test_every_module_is_used_and_exists() -> None:
    graph = import_graph()
    imported = set().union(*graph.values())
    assert imported <= set(graph)
    pages = {"lobby.js", "table/main.js", "audit/main.js", "finished.js", "history.js"}
    pages.add("broadcast.js")
    of_table = {"card_animation", "drag_scroll", "dragging", "noise", "qr_code", "short_deck"}
    of_table |= {"round_result", "seat_menu", "shown_hands", "suit_choice"}
    loaded_later = {"early.js", "audit_worker.js", "lean-qr/lean-qr.js"}
    loaded_later |= {f"table/{name}.js" for name in of_table}
    entries = {WEB / name for name in pages | loaded_later}
    assert set(graph) - imported == entries
