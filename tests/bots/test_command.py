"""`dealer bots` as a process, and `dealer mcp` without its package."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

import dealer
from dealer.cli.main import main
from tests.harness.own_gateway import own_gateway

ROOT = Path(__file__).parents[2]
ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.slow
async def test_ctrl_c_ends_the_bots_and_they_leave(tmp_path):
    async with own_gateway(tmp_path) as server, dealer.connect(server, name="Ada") as house:
        table = await house.open(seats=4)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dealer", "bots", "2", table.id, "--server", server,
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await table.until(lambda table: len(table.seats) == 2)
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
        assert process.returncode == 0
        assert output.decode().count("left.") == 2
        await table.until(lambda table: not table.seats)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["0", ID], "Error"),
        (["1", "nonsense"], "32 hexadecimal digits"),
        (["1", f"http://c.org/tables/{ID}#ticket=dt_1"], "for one player"),
        (["1", ID, "--server", "localhost"], "no address of a server"),
    ],
)
def test_wrong_arguments_are_usage_errors(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as ended:
        main(["bots", *arguments])
    assert ended.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_mcp_names_the_package_that_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "dealer.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "--store", str(tmp_path)])
    assert ended.value.code == 1
    assert "pip install '.[mcp]'" in capsys.readouterr().err
