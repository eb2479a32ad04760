"""Modules of a page as one script, run by node."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from dealer.gateway.pages.modules import combine
from dealer.gateway.pages.static_files import StaticFiles
from tests.harness.programs import output_of
from tests.web.js_verifier import node

FILES = {
    "page/main.js": 'import { first, second as two } from "../all.js";\n'
    'import * as one from "../one.js";\nimport { second } from "../two.js";\n'
    "console.log(first, two === second, one.first, one.own(), import.meta.url);\n",
    "all.js": 'export { first } from "./one.js";\n'
    'export {\n  third as second,\n} from "./two.js";\n',
    "one.js": "console.log('once');\nexport const first = 1;\n"
    "export function own() {\n  return import.meta.url;\n}\n",
    "two.js": 'import { first } from "./one.js";\nexport const third = await first;\n'
    "export const second = third;\n",
}


def run(script: str, at: Path) -> list[str]:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(script)
    return output_of(node(), at).splitlines()


def test_each_module_runs_once_and_has_its_exports_and_its_address(tmp_path: Path) -> None:
    script = combine(["page/main.js"], FILES.__getitem__, at="page/main.js")
    main = tmp_path / "page" / "main.js"
    (tmp_path / "package.json").write_text('{"type": "module"}')
    addresses = f"{(tmp_path / 'one.js').as_uri()} {main.as_uri()}"
    assert run(script, main) == ["once", f"1 true 1 {addresses}"]


def test_the_command_line_of_a_module_is_left_out(tmp_path: Path) -> None:
    text = "console.log('page');\n// ——— command line ———\n\nconsole.log('program');\n"
    assert run(
        combine(["one.js"], {"one.js": text}.__getitem__, at="one.js"), tmp_path / "a.mjs"
    ) == ["page"]
    assert "commandLine" not in StaticFiles()._as_sent("table/main.js").data.decode()


@pytest.mark.parametrize(
    "text", ['import "./one.js";', 'export * from "./one.js";', "export default 1;"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not supported"):
        combine(["main.js"], {**FILES, "main.js": text}.__getitem__, at="main.js")


def test_a_cycle_is_refused() -> None:
    files = {"one.js": 'import { b } from "./two.js";', "two.js": 'import { a } from "./one.js";'}
    with pytest.raises(ValueError, match=r"import cycle: one\.js imports two\.js imports one\.js"):
        combine(["one.js"], files.__getitem__, at="one.js")


@pytest.mark.parametrize("page", ["lobby.js", "table/main.js", "audit/main.js"])
def test_a_page_is_sent_its_modules_in_one_script(page: str, tmp_path: Path) -> None:
    files = StaticFiles()
    sent = files._as_sent(page).data.decode()
    assert 'modules["verify.js"] = await' in sent
    assert (resources.files("dealer") / "web" / page).is_file()
    checked = tmp_path / "page.mjs"
    checked.write_text(sent)
    output_of(node(), "--check", checked)
