"""The first minute of four people behind one address on a machine slowed to a quarter.

The default limits refuse none of it: what is charged is what was used, whatever the machine.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import dealer
from tests.harness.ports import unused_port
from tests.harness.programs import output_of
from tests.harness.server_process import ROOT, ServerProcess

SHARE = 0.25
PERIOD = 100_000
_ASSET = re.compile(r'(?:href|src)="((?:\.\./)*web/[^"]+)"')
_REFUSED = re.compile(
    r'^dealer_\w+\{[^}]*"(?:rate|rate_limited|address)"[^}]*\} (?!0(?:\.0)?$)', re.M
)


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """Let a process have a quarter of a processor, by a control group of either version."""
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup") / ("" if version_2 else "cpu") / f"dealer-test-{pid}"
    quota = int(SHARE * PERIOD)
    try:
        group.mkdir()
        if version_2:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        pytest.skip(f"a control group cannot be made: {error}")
    try:
        yield
    finally:
        parent = group.parent / "cgroup.procs"
        parent.write_text(str(pid))
        group.rmdir()


async def browse(browser: httpx.AsyncClient, path: str) -> None:
    """A page with its scripts and styles, as a browser loads them."""
    page = await browser.get(path)
    page.raise_for_status()
    for asset in _ASSET.findall(page.text):
        (await browser.get(page.url.join(asset).path)).raise_for_status()


@pytest.mark.skipif(os.geteuid() != 0, reason="a control group needs root")
async def test_the_first_minute_on_a_slow_machine(tmp_path: Path) -> None:
    ops = unused_port()
    options: dict[str, Any] = {"limit": (), "ops-port": ops}
    server = ServerProcess(tmp_path, **options)
    server.program = ("-m", "tests.chaos.slow_clock")
    async with server:
        with slowed(server.pid):
            base = f"http://127.0.0.1:{server.port}"
            async with (
                httpx.AsyncClient(base_url=base, timeout=60) as browser,
                dealer.connect(server.url, name="Ada") as ada,
                dealer.connect(server.url, name="Bob") as bob,
                dealer.connect(server.url, name="Cleo") as cleo,
                dealer.connect(server.url, name="Dan") as dan,
            ):
                demo = asyncio.to_thread(
                    output_of, sys.executable, "-m", "dealer", "demo", "--url", base, cwd=ROOT
                )
                demonstration = asyncio.create_task(demo)
                for _ in range(4):
                    await browse(browser, "/")
                opened = await ada.open(rules={"game": "hearts"})
                tables = [await house.join(opened) for house in (ada, bob, cleo, dan)]
                page = f"/tables/{tables[0].id}"
                for _ in range(4):
                    await browse(browser, page)
                for _ in range(2):
                    await tables[0].round_open()
                    await tables[0].shuffle()
                    await tables[0].deal(each=13)
                    for index in range(16):
                        table = tables[index % 4]
                        await table.play([table.hand[0]])
                    await tables[0].round_close()
                    await browse(browser, f"{page}/audit")
                    await browse(browser, f"{page}/history")
                    for what in ("bundle.jsonl", "history.txt", "bundle.jsonl"):
                        (await browser.get(f"{page}/{what}")).raise_for_status()
                assert "passed" in await demonstration
                metrics = (await browser.get(f"http://127.0.0.1:{ops}/metrics")).text
                assert not _REFUSED.findall(metrics)
