"""The audit page as one file: nothing beside it, and a policy that names exactly what it runs."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from base64 import b64encode
from importlib import resources
from pathlib import Path

import pytest

from dealer.gateway.onefile import audit_page, compose
from tests.gateway.asking import get
from tests.web.second import node

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
    "globalThis.said = [first(), new Two().name, all.three, all.four];\n",
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


def test_modules_mean_the_same_in_one_file(tmp_path: Path) -> None:
    page, _ = compose("page.html", FILES.__getitem__)
    file = tmp_path / "script.mjs"
    file.write_text(script_of(page) + "\nconsole.log(JSON.stringify(globalThis.said));\n")
    done = subprocess.run([node(), str(file)], capture_output=True, check=True, encoding="utf-8")
    assert json.loads(done.stdout) == [4, "</script><!--", 3, 4]


@pytest.mark.parametrize("made", [compose("page.html", FILES.__getitem__), audit_page()])
def test_the_policy_names_what_runs_and_nothing_else(made) -> None:
    page, policy = made
    text = page.decode()
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    assert directives["script-src"] == sha256(script_of(page))
    assert directives["style-src"] == sha256(style)
    assert directives["default-src"] == "'none'"
    assert "/web/" not in text
    assert " src=" not in text.replace("data-src", "")
    assert not re.search(r"@import|url\(", style)
    policy_there = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert [found.replace("&#x27;", "'") for found in policy_there] == [policy]


@pytest.mark.parametrize(
    "line",
    [
        'import four from "./in/three.js";',
        'import "./in/three.js";',
        "export default 3;",
        'export { three } from "./in/three.js";',
        "export let three = 3;",
    ],
)
def test_what_it_does_not_know_it_says(line) -> None:
    files = FILES | {"one.js": f"{line}\n"}
    with pytest.raises(ValueError, match="is not known here"):
        compose("page.html", files.__getitem__)


def test_a_circle_is_said() -> None:
    files = FILES | {"in/three.js": 'import { one } from "../one.js";\n'}
    with pytest.raises(ValueError, match="import in a circle"):
        compose("page.html", files.__getitem__)


def test_a_file_of_another_kind_is_said() -> None:
    files = FILES | {"page.html": PAGE.replace("<body>", '<body><img src="/web/@/x.png">')}
    with pytest.raises(ValueError, match="refers to a file"):
        compose("page.html", files.__getitem__)


def test_the_verifier_in_it_is_the_one_that_lies_beside() -> None:
    verifier = (resources.files("dealer") / "web" / "verify.js").read_text("utf-8")
    body = verifier[verifier.index("class Fault") : verifier.index("// ————")]
    plain = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    assert plain in audit_page().page.decode()


async def test_it_is_served_under_its_own_policy(gateway) -> None:
    got = await get(gateway.port, "/audit.html")
    assert got.status == 200
    assert got.body == audit_page().page
    assert got.headers["content-security-policy"] == (
        f"{audit_page().policy}; frame-ancestors 'none'"
    )
    again = await get(gateway.port, "/audit.html", **{"If-None-Match": got.headers["etag"]})
    assert again.status == 304
