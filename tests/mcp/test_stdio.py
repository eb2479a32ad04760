"""`dealer mcp` as a process, with the client of the official package over its standard streams."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import dealer
from tests.harness.installed import missing
from tests.harness.own_gateway import own_gateway
from tests.harness.programs import output_of

ROOT = Path(__file__).parents[2]
INSPECTOR = ROOT / "build/node_modules/.bin/mcp-inspector"

pytestmark = pytest.mark.slow


def parameters(server: str, folder: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "dealer", "mcp", "--url", server, "--store", str(folder)],
        cwd=ROOT,
    )


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def agents_of(folder: Path) -> list[int]:
    """The ids of this test's processes that use the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (command := _command_line(entry)):
            found += [int(entry.name)] if f"--store\0{folder}\0" in command else []
    return found


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text()
    except OSError:
        return ""


async def test_an_agent_that_is_killed_continues_in_its_seat(tmp_path):
    folder = tmp_path / "agent"
    async with own_gateway(tmp_path) as server, dealer.connect(server, name="Ada") as house:
        ada = await house.join(await house.open(seats=2))
        killed = False
        try:
            async with Client(parameters(server, folder)) as client:
                assert len((await client.list_tools()).tools) == 9
                await call(client, "sit", table=ada.id, name="Robot")
                await ada.until(lambda table: len(table.seats) == 2)
                await ada.round_open()
                await ada.shuffle()
                drawn = (await call(client, "draw", count=2))["drawn"]
                refused = await client.call_tool("play", {"cards": ["As.1"]})
                assert refused.is_error
                assert "card_not_in_hand" in json.dumps(refused.model_dump(mode="json"))
                (pid,) = agents_of(folder)
                os.kill(pid, signal.SIGKILL)
                killed = True
                await call(client, "look")
        except Exception:
            assert killed
        else:
            raise AssertionError("the killed process has answered")
        await ada.note("chat", "where is Robot?")
        async with Client(parameters(server, folder)) as client:
            answer = await call(client, "wait", seconds=20)
            assert answer["my_hand"] == drawn
            assert answer["events"][-1]["text"] == "where is Robot?"
            await call(client, "play", cards=drawn[:1])
            await ada.until(lambda table: table.piles.get("table") == drawn[:1])
        assert ada.seats == {1: "Ada", 2: "Robot"}


def test_the_inspector_lists_and_calls_the_tools(tmp_path):
    if not INSPECTOR.exists():
        missing("@modelcontextprotocol/inspector is not installed (npm install --prefix build)")
    agent = [sys.executable, "-m", "dealer", "mcp", "--store", str(tmp_path / "agent")]
    printed = output_of(INSPECTOR, "--cli", *agent, "--method", "tools/list", cwd=ROOT)
    tools = {tool["name"]: tool for tool in json.loads(printed)["tools"]}
    assert len(tools) == 9
    assert tools["sit"]["inputSchema"]["required"] == ["table"]
