"""`dealer serve --insecure-test-decks`: what it says on its pages, in its log and at its start."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import dealer
from dealer.languages.language import languages
from dealer.proof.verify.replay import INSECURE
from tests.harness.server_process import ROOT, ServerProcess

pytestmark = pytest.mark.slow

_WARNING = re.compile(r'<body[^>]*>\s*<p class="warning" role="alert">(.*?)</p>', re.DOTALL)


def page_of(server: ServerProcess, path: str) -> str:
    request = Request(f"http://127.0.0.1:{server.port}{path}", headers={"Accept": "text/html"})
    try:
        with urlopen(request) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return error.read().decode()


def dealer_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dealer", *arguments],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


async def test_a_server_with_test_decks_says_so_everywhere(tmp_path, caplog):
    server = ServerProcess(tmp_path, **{"log-level": "DEBUG", "log-format": "json"})
    server.environment["DEALER_INSECURE_TEST_DECKS"] = "1"
    async with server:
        async with dealer.connect(server.url, name="Ada") as house:
            table = await house.join(await house.open(rules={"insecure_test_deck": {"seed": "1"}}))
            for enter in ("join", "watch"):
                caplog.clear()
                async with dealer.connect(server.url) as other:
                    await getattr(other, enter)(table.id)
                assert INSECURE in caplog.text
            await table.round_open()
            await table.shuffle()
            await table.close()
            of_table = f"/tables/{table.id}"
        paths = ("/", "/audit", "/audit.html", of_table, f"{of_table}/audit", "/no-such-page")
        for path in paths:
            page = await asyncio.to_thread(page_of, server, path)
            (warning,) = _WARNING.findall(page)
            for tag, language in languages().items():
                assert f'<span lang="{tag}"' in warning
                assert language.text("errorPages.insecureDecks") in warning
        (style,) = re.findall(
            r'href="\.?/?(web/\w+/appearance/warning\.css)"', page_of(server, "/")
        )
        assert ':root[lang="de"] .warning [lang="de"]' in page_of(server, f"/{style}")
        history = await asyncio.to_thread(page_of, server, f"{of_table}/history.txt")
        assert INSECURE in history
        bundle = tmp_path / "bundle.jsonl"
        bundle.write_bytes(await server.bundle(table.id))
    output = server.output.read_text()
    assert "Insecure test decks are on" in output
    logged = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert len(logged) > 3
    assert all(line["insecure_test_decks"] is True for line in logged)
    assert "warning" in [line["level"] for line in logged]
    for command in (
        ["verify", str(bundle)],
        ["audit", table.id, "--database", server.address],
        ["history", str(bundle)],
    ):
        done = await asyncio.to_thread(dealer_command, *command)
        assert done.returncode == 1
        assert INSECURE in done.stdout + done.stderr


async def test_other_servers_say_nothing_of_it(tmp_path):
    async with ServerProcess(tmp_path, **{"log-format": "json"}) as server:
        assert "warning" not in page_of(server, "/")
    assert "insecure" not in server.output.read_text()
