"""The pages call what the client has: they are no part of its types, so no compiler says so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.web.js_verifier import FILE, run_module

WEB = FILE.parent
PAGES = [
    path for path in sorted(WEB.rglob("*.js")) if not path.is_relative_to(WEB / "client")
]  # fmt: skip


def members(module: str, name: str) -> set[str]:
    """The methods and properties of a class of the client."""
    address = (WEB / "client" / module).as_uri()
    return set(
        run_module(f"""
        import {{ {name} }} from "{address}";
        const found = new Set();
        for (let one = {name}.prototype; one !== Object.prototype; one = Object.getPrototypeOf(one))
          Object.getOwnPropertyNames(one).forEach((each) => found.add(each));
        console.log(JSON.stringify([...found]));
    """)
    )


def test_what_the_pages_call_of_a_table_is_there() -> None:
    there = members("remote_table.js", "RemoteTable")
    called: dict[str, Path] = {}
    for path in PAGES:
        for method in re.findall(r"\btable\.(\w+)\(", path.read_text(encoding="utf-8")):
            called[method] = path
    assert len(called) > 20
    assert {method: path for method, path in called.items() if method not in there} == {}
