"""Scripts without their comments are the same scripts: node's own parser finds the same tokens."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway.comments import without_comments
from tests.web.second import FILE, node

WEB = FILE.parent
TOKENS = Path(__file__).with_name("tokens.cjs")

ODD = [
    "let a = 1; // one\nlet b = a /* two */ / 2;",
    "let a = /[/*]//* a comment */.test('x');",
    r"""let a = /\/\/[\]/]+\//gu, b = '//', c = "/*\"", d = 'it\'s // no';""",
    "let a = `//${`/*${1 /* in a value */}*/`} ${{ b: `}` }.b} \\` \\${ // text`; // out",
    "let s = 'a\\\n// b'; /**\n * lines\n */ let t = s.length / 2 / 3;",
    "if (/(?:a)/.test('a')) { let x = (1 + 2) / 3; }",
    "const f = (x) => /x\\//.test(x), g = [4][0] / 2, h = `a` / 2, i = 'a' / 2;",
    "function f(a) { return /* why */ /a/.test(a) } // last",
    "let of = { return: 4 }; let half = of.return / 2; let other = of?.a / 2 /* / */;",
    "let a = 1\n/* a line end\n */ let b = 2",
    "let a/**/= 1; let b = typeof/**/a;",
    "class A { #b = 4 / 2; static c(a) { return a.#b / 2 } } // $&",
    "let ä = 4, _$ = ä / 2, c = 1_0 / 2; // ♥\ufe0e",
    "#!/usr/bin/env node\nlet a = 1; // the first line is no comment",
    "x: for (const a of ['/']) { if (a in { '/': /\\// }) continue x; }",
    "let a = 1; /* no line end */",
    "export default /a\\//; // a value",
    "export { a as b }; const a = 1; //",
]
REFUSED = [
    "if (a) /x/.test(a);",
    "while (a) /x/.test(a);",
    "let a = {} / 2;",
    "let a = b++ / 2;",
    "let a = of / 2;",
    "let a = 'it",
    'let a = "it\n";',
    "let a = `it ${a",
    "let a = `it",
    "let a = /it",
    "let a = 1; /* it",
    "let a = 1 /* it",
    "f(1",
    "f)1",
]


def tokens(scripts: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [node(), "--expose-internals", str(TOKENS)],
        input=json.dumps(scripts),
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def same(scripts: list[str]) -> int:
    """How many comments they had; the tokens stay, each in its line."""
    before, after = tokens(scripts), tokens([without_comments(script) for script in scripts])
    for script, was, now in zip(scripts, before, after, strict=True):
        assert "error" not in was, (script, was)
        assert now["tokens"] == was["tokens"], script
        assert now["comments"] == script.startswith("#!"), script
    return sum(one["comments"] for one in before)


def test_every_script_of_the_pages() -> None:
    scripts = [path.read_text("utf-8") for path in sorted(WEB.rglob("*.js"))]
    assert len(scripts) > 30
    assert same(scripts) > 500


def test_odd_scripts() -> None:
    assert same(ODD) > len(ODD)


@pytest.mark.parametrize("script", REFUSED)
def test_what_could_mean_two_things_is_not_guessed_at(script: str) -> None:
    with pytest.raises(ValueError, match=r"^Line 1 of a script cannot be read: "):
        without_comments(script)
