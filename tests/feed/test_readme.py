"""The examples of feed/README.md, against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.gateway import Gateway
from dealer.service.startup import open_service
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


def block(language: str) -> str:
    """The first example in a language."""
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1]


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
    if language == "js":
        file = tmp_path / "follow.mjs"
        program: tuple[str, ...] = (node(), str(file))
    else:
        file = tmp_path / "follow.py"
        program = (sys.executable, str(file))
    file.write_text(block(language) + (PYTHON if language == "python" else NODE), encoding="utf-8")
    address = f"http://127.0.0.1:{gateway.port}"
    found = await output(program, address, key, live_table.committed)
    assert [each["version"] for each in found] == list(range(1, live_table.committed + 1))
