"""The examples of feed/README.md, against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.gateway import Gateway
from dealer.proof.canonical import dump, one_line
from dealer.proof.tree import leaf_hash
from dealer.service.build import open_service
from tests.gateway.conftest import serving
from tests.harness.service_keys import add_key
from tests.service.tables import shuffled_table
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

DOCUMENT = (Path(__file__).parents[2] / "dealer/feed/README.md").read_text(encoding="utf-8")

PYTHON = """
import sys
from itertools import islice
for found in islice(follow(*sys.argv[1:3]), int(sys.argv[3])):
    print(json.dumps(found), flush=True)
"""
NODE = """
const [house, key, count] = process.argv.slice(2);
let left = Number(count);
for await (const found of follow(house, key)) {
  console.log(JSON.stringify(found));
  if (--left === 0) process.exit(0);
}
"""


HASH = {
    "python": "import sys\nprint(leaf_hash(sys.stdin.buffer.read().decode()))\n",
    "js": """
import { readFileSync } from "node:fs";
console.log(leafHash(readFileSync(0, "utf8")));
""",
}


def block(language: str, declaring: str) -> str:
    """The example in a language that declares this function."""
    (found,) = (
        each
        for each in re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
        if declaring in each
    )
    return str(found)


def program_of(language: str, text: str, folder: Path) -> tuple[str, ...]:
    """Writes a program; the command that runs it."""
    file = folder / ("program.mjs" if language == "js" else "program.py")
    file.write_text(text, encoding="utf-8")
    return (node() if language == "js" else sys.executable, str(file))


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with serving(open_service(f"sqlite:///{tmp_path / 'dealer.db'}")) as gateway:
        yield gateway


async def output(program: tuple[str, ...], *given: object) -> list[dict[str, object]]:
    process = await asyncio.create_subprocess_exec(
        *program, *map(str, given), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 50)
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("language", ["python", "js"])
async def test_a_follower(gateway: Gateway, tmp_path: Path, language: str) -> None:
    service = gateway.context.service
    live_table = await shuffled_table(service)
    key = await add_key(service, "shop", "admin")
    text = block(language, "follow(") + (PYTHON if language == "python" else NODE)
    program = program_of(language, text, tmp_path)
    address = f"http://127.0.0.1:{gateway.port}"
    found = await output(program, address, key, live_table.committed)
    assert [each["version"] for each in found] == list(range(1, live_table.committed + 1))


@pytest.mark.parametrize("language", ["python", "js"])
def test_the_hash_of_a_leaf_from_its_escaped_line(tmp_path: Path, language: str) -> None:
    leaf = dump(
        {"at": 1, "public": {"text": 'a\x85b\u2028\u2029\\u2028 "é" \x7f\U0001f0a1'}, "v": 1}
    )
    line = one_line(f'{{"position":"0-1-0","event":{leaf}}}')
    assert line.splitlines() == [line]
    program = program_of(language, block(language, "leaf") + HASH[language], tmp_path)
    done = subprocess.run(program, input=line.encode(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == leaf_hash(leaf.encode()).hex()
