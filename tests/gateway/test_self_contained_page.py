"""The self-contained audit page: no other files, and a policy that allows only its own code."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from importlib import resources
from pathlib import Path

import pytest

from dealer.gateway.pages.self_contained_page import audit_page, compose
from tests.gateway.http_client import get
from tests.harness.programs import output_of
from tests.web.js_verifier import node

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="icon" href="/web/@/icon.svg">
<link rel="stylesheet" href="/web/@/a.css">
<link rel="stylesheet" href="/web/@/b.css">
<script type="module" src="/web/@/in/main.js"></script>
</head>
<body></body>
</html>
"""
FILES = {
    "page.html": PAGE,
    "icon.svg": '<svg a="1"/>',
    "a.css": "a { color: red }",
    "b.css": "b { color: red }",
    "in/main.js": 'import { one as first, Two } from "../one.js";\n'
    'import * as all from "./three.js";\n'
    "globalThis.result = [first(), new Two().name, all.three, all.four];\n",
    "one.js": '#!/usr/bin/env node\nimport {\n  three,\n} from "./in/three.js";\n'
    "export async function unused() {}\n"
    "export function one() {\n  return three + 1;\n}\n"
    'export class Two {\n  name = "</script><!--";\n}\n',
    "in/three.js": "const hidden = 3;\nexport const three = hidden;\nexport const four = 4;\n",
}


def script_of(page: bytes) -> str:
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page.decode(), re.DOTALL)
    return str(script)


def sha256(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_combined_modules_behave_the_same(tmp_path: Path) -> None:
    page, _ = compose("page.html", FILES.__getitem__)
    file = tmp_path / "script.mjs"
    file.write_text(script_of(page) + "\nconsole.log(JSON.stringify(globalThis.result));\n")
    assert json.loads(output_of(node(), str(file))) == [4, "</script><!--", 3, 4]


@pytest.mark.parametrize("composed", [compose("page.html", FILES.__getitem__), audit_page()])
def test_the_policy_allows_only_the_inlined_code(composed) -> None:
    page, policy = composed
    text = page.decode()
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    early = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    hashes = [sha256(script) for script in (*early, script_of(page))]
    assert directives["script-src"] == " ".join(hashes)
    assert directives["style-src"] == sha256(style)
    assert directives["default-src"] == "'none'"
    assert "/web/" not in text
    assert " src=" not in text.replace("data-src", "")
    assert not re.search(r"@import|url\(", style)
    policies = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert [found.replace("&#x27;", "'") for found in policies] == [policy]


@pytest.mark.parametrize(
    "line",
    [
        'import four from "./in/three.js";',
        'import "./in/three.js";',
        "export default 3;",
        'export * from "./in/three.js";',
        "export let three = 3;",
    ],
)
def test_unsupported_imports_and_exports_are_refused(line) -> None:
    files = FILES | {"one.js": f"{line}\n"}
    with pytest.raises(ValueError, match="is not supported"):
        compose("page.html", files.__getitem__)


def test_an_import_cycle_is_refused() -> None:
    files = FILES | {"in/three.js": 'import { one } from "../one.js";\n'}
    with pytest.raises(ValueError, match="import cycle"):
        compose("page.html", files.__getitem__)


def test_an_unsupported_reference_is_refused() -> None:
    files = FILES | {"page.html": PAGE.replace("<body>", '<body><img src="/web/@/x.png">')}
    with pytest.raises(ValueError, match="refers to a file"):
        compose("page.html", files.__getitem__)


def test_the_page_has_the_verifier_of_this_version() -> None:
    verifier = (resources.files("dealer") / "web" / "verify.js").read_text("utf-8")
    body = verifier[verifier.index("class Fault") : verifier.index("// ————")]
    plain = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    assert plain in audit_page().page.decode()


async def test_the_page_is_served_with_its_policy(gateway) -> None:
    got = await get(gateway.port, "/audit.html")
    assert got.status == 200
    assert got.body == audit_page().page
    assert got.headers["content-security-policy"] == (
        f"{audit_page().policy}; frame-ancestors 'none'"
    )
    again = await get(gateway.port, "/audit.html", **{"If-None-Match": got.headers["etag"]})
    assert again.status == 304
