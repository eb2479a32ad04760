"""Examples of the documents that no other test runs, against a real server."""

from __future__ import annotations

import json
import re
import shlex
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.async_api import async_playwright

from dealer.client.house import connect
from dealer.packs.catalogue import shipped
from tests.browser.conftest import FLAGS, chromium
from tests.docs.tutorial import Reader, blocks
from tests.harness.installed import program
from tests.harness.server_process import ROOT
from tests.web.js_verifier import node

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

FILE_OF_A_PAGE = """
import { readFileSync } from "node:fs";
const file = { arrayBuffer: async () => readFileSync("bundle.jsonl") };
const key = null, saved = [], progress = () => {};
"""
REPORTED = """
console.log(JSON.stringify([report.fault, report.remarks.rounds, report.swaps.length]));
"""


def example(document: str, language: str, word: str = "") -> str:
    """The one block of a language in a document that contains a word."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = [one.text for one in blocks(text) if one.language == language and word in one.text]
    assert len(found) == 1, (document, language, word)
    return found[0]


async def a_closed_table(reader: Reader) -> str:
    """The id of a table with one round and a shuffle, closed."""
    async with connect(reader.url) as house:
        table = await house.join(await house.open(), name="Ada")
        await table.round_open()
        await table.shuffle()
        await table.draw()
        await table.close()
        return table.id


async def test_the_readme_in_python(reader: Reader) -> None:
    (reader.folder / "ada.py").write_text(reader.with_ports(example("README.md", "python")))
    await reader.type("python ada.py\n", "['…', '…'] ['…', '…'] 50")


async def test_a_table_of_a_game(reader: Reader) -> None:
    program = reader.with_ports(example("dealer/packs/README.md", "python"))
    (reader.folder / "game.py").write_text(program)
    cards = shipped().games["colours-and-numbers"]["cards"]
    await reader.type("python game.py\n", f"{cards}")


async def test_the_readme_of_the_client(reader: Reader) -> None:
    document = ".client/README.md"
    play = example(document, "python", "async")
    (reader.folder / "ada.py").write_text(reader.with_ports(play))
    await reader.type("python ada.py\n", "['…', '…'] ['…', '…'] 50")
    table = await a_closed_table(reader)
    await reader.type(f"curl -sf {reader.page}tables/{table}/bundle.jsonl -o FILE\n")
    (reader.folder / "check.py").write_text(example(document, "python", "FILE"))
    await reader.type("python check.py\n", "passed")


async def test_the_readme_in_javascript(reader: Reader) -> None:
    """In a page of another port of localhost."""
    script = reader.with_ports(example("README.md", "js"))
    page = f'<link rel="icon" href="data:,"><script type="module">{script}</script>'.encode()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever).start()
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path=chromium(), args=list(FLAGS)
                )
                shown = await browser.new_page()
                async with shown.expect_console_message() as message:
                    await shown.goto(f"http://localhost:{server.server_port}/")
                text = (await message.value).text
                await browser.close()
        finally:
            server.shutdown()
    assert re.fullmatch(r"\[(\w\w), (\w\w)\] \[\1, \2\] 50", text)


async def test_the_downloads_of_the_client(reader: Reader) -> None:
    program("curl")
    await reader.type(example("dealer/web/GENERATED.md", "sh", "curl "))
    for path in ("client.js", "client.d.ts", "verify.js", "client/house.js"):
        served = (reader.folder / path).read_bytes()
        assert served == (ROOT / "dealer/web" / path).read_bytes()


async def test_a_service_with_curl(reader: Reader) -> None:
    program("curl")
    document = "dealer/gateway/SERVICES.md"
    await reader.type(example(document, "sh", "dealer key add"))
    opening, ticket = (example(document, "sh", one) for one in ("table.open", "seat.ticket"))
    ping = (
        f'{reader.page}rpc -H "Authorization: Bearer $(cat shop.key)" {shlex.join(call_of_ping())}'
    )
    await reader.type(f"until curl -sf {ping}; do :; done\n")  # the key is valid within a second
    opened = result_of(await reader.type(opening))
    assert list(opened) == list(json.loads(example(document, "json"))["result"])
    made = result_of(await reader.type(ticket.replace("TABLE", opened["table"])))
    async with connect(reader.url) as house:
        table = await house.join(opened["table"], ticket=made["ticket"])
        assert list(table.seats.values()) == ["Dora"]
    await reader.type(example(document, "sh", "dealer key revoke"))
    status = opening.replace("curl ", "curl -s -o refused -w '%{http_code}' ").strip()
    await reader.type(f'until [ "$({status})" = 401 ]; do :; done\n')


def result_of(printed: str) -> dict[str, Any]:
    """The result of the one answer that is printed."""
    (answer,) = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    return dict(answer["result"])


def call_of_ping() -> list[str]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    return ["-H", "Content-Type: application/json", "-d", body]


async def test_a_deck_with_curl(reader: Reader) -> None:
    program("curl")
    document = "dealer/gateway/DECKS.md"
    block = example(document, "sh", "shuffle")
    assert example("README.md", "sh", "curl ") == block
    shuffled, draw = block.splitlines(keepends=True)
    printed = await reader.type(shuffled)
    deck = re.search(r'"deck_id": ?"(\w+)"', printed)
    assert deck, printed
    assert (await reader.type(draw.replace("DECK_ID", deck[1]))).count('"code"') == 2
    close, check = example(document, "sh", "verify").splitlines(keepends=True)
    bundle = re.search(
        r'"proof_bundle": ?"([^"]+)"', await reader.type(close.replace("DECK_ID", deck[1]))
    )
    assert bundle
    await reader.type(check.replace("PROOF_BUNDLE", bundle[1]))


async def test_the_feed_with_curl(reader: Reader) -> None:
    program("curl")
    follow = example("dealer/feed/README.md", "sh").replace(
        "https://cards.example.org", reader.page[:-1]
    )
    table = await a_closed_table(reader)
    once = follow.replace("curl -N", "curl -sf -o /dev/null").replace('"\n', '&wait=0"\n')
    await reader.type(
        f"# Terminal 2\nKEY=$(dealer key add follower --may admin)\nuntil {once}do :; done\n"
    )
    await reader.type(f"# Terminal 2\n{follow}", f'"table":"{table}"')


async def test_the_verifier_in_a_program(reader: Reader) -> None:
    table = await a_closed_table(reader)
    await reader.type(f"curl -sf {reader.page}tables/{table}/bundle.jsonl -o bundle.jsonl\n")
    verifier = f"{ROOT}/dealer/web/verify.js"
    code = example("dealer/web/README.md", "js", "reportLines").replace("./verify.js", verifier)
    (reader.folder / "check.mjs").write_text(f"{FILE_OF_A_PAGE}{code}{REPORTED}", encoding="utf-8")
    await reader.type(f"{node()} check.mjs\n", "[null,1,51]")


async def test_the_flags_of_serve_are_accepted(reader: Reader) -> None:
    """`dealer config` takes the flags of `dealer serve`, and refuses what it refuses."""
    documents = ("dealer/cli/OPERATING.md", "dealer/gateway/SERVICES.md")
    text = "".join((ROOT / document).read_text(encoding="utf-8") for document in documents)
    lines = [line for one in blocks(text) if one.language == "sh" for line in one.text.splitlines()]
    serving = [line for line in lines if line.startswith("dealer serve -")]
    assert len(serving) == 3
    for line in serving:
        await reader.type(line.replace("dealer serve", "dealer config") + "\n")
