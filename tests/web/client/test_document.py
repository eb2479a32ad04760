"""Every example of CLIENT.md and PROTOCOL.md works against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial

from dealer.client.connection import FINAL, SUBPROTOCOL
from dealer.errors import REFUSALS
from dealer.game.cards import DECK_MAX, SHOE_MAX
from dealer.game.rules import KNOWN, PRESETS, SEATS_MAX, WAIT_MS_MAX, WAIT_MS_MIN, WHO, Rules
from dealer.gateway import Limits
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.schema.components import notifications
from dealer.gateway.session.commands import deck_codes
from dealer.gateway.session.methods import METHODS
from dealer.service.tables.table_ids import RULES_MAX
from tests.web.client import command_table
from tests.web.client.node_client import TIMEOUT, sockets
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

WEB = Path(__file__).parents[3] / "dealer" / "web"
DOCUMENT = (WEB / "CLIENT.md").read_text()
PROTOCOL = (WEB / "PROTOCOL.md").read_text()
HOUSE = "ws://localhost:8080/ws"


def examples(language: str = "", document: str = DOCUMENT) -> list[str]:
    """A document's code blocks in a language; without one, the frames."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    found = [text for name, text in fenced if name == language]
    assert found
    return found


async def output(*command: str, cwd: Path, typed: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=STDOUT
    )
    async with asyncio.timeout(TIMEOUT):
        printed, _ = await process.communicate(typed.encode())
    assert process.returncode == 0, printed.decode()
    return printed.decode()


@pytest.fixture
def folder(tmp_path):
    """A folder with a copy of the client."""
    for name in ("client.js", "verify.js", "package.json"):
        shutil.copy(WEB / name, tmp_path / name)
    shutil.copytree(WEB / "client", tmp_path / "client")
    return tmp_path


async def test_the_python_example(real_server, tmp_path):
    (code,) = examples("python")
    (tmp_path / "example.py").write_text(code.replace(HOUSE, real_server.url))
    printed = await output(sys.executable, "example.py", cwd=tmp_path)
    assert re.fullmatch(
        r"\['(\w\w)', '(\w\w)'\] \['\1', '\2'\] 50\n"
        r"\d+ 1 deck \1\n\d+ 1 deck \2\n",
        printed,
    )


async def test_the_javascript_examples(real_server, folder):
    first, second = examples("js")
    printed = []
    for code in (first, second):
        (folder / "example.js").write_text(code.replace(HOUSE, real_server.url))
        printed.append(await output(node(), *sockets(), "example.js", cwd=folder))
    assert re.match(r"\[ '\w\w', '\w\w' \] \[ '\w\w', '\w\w' \] 50\n", printed[0])
    assert printed[0].endswith(
        "entropy: yes, commitment: yes, seal: yes, cards: yes, roots: yes, "
        "signatures: yes, moves: yes, round: yes\n"
    )
    assert re.search(r"\d+ CardDrawn face down\n\d+ CardDrawn \w\w\n", printed[1])
    assert "undefined" not in printed[1]


async def test_the_terminal_example(real_server, tmp_path):
    (typing,) = examples("sh", PROTOCOL)
    command = typing.replace(HOUSE, real_server.url).split()
    assert command[0] == "python"
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert f"`{ping}`" in PROTOCOL
    printed = await output(sys.executable, *command[1:], cwd=tmp_path, typed=f"{ping}\n")
    assert "Connected" in printed


async def test_the_frames_of_the_protocol_examples(real_server):
    """The server accepts the frames, and its answers have the members that the guide shows."""
    lines = "".join(examples(document=PROTOCOL)).splitlines()
    requests = [json.loads(line[2:]) for line in lines if line.startswith("> ")]
    (practice,) = (frame for frame in requests if "from" in frame["params"])
    requests.remove(practice)
    expected = [line for line in lines if '"result"' in line]
    known: dict[str, str] = {}
    results: list[dict[str, Any]] = []
    async with (
        asyncio.timeout(TIMEOUT),
        dial(real_server.url, subprotocols=[SUBPROTOCOL]) as socket,
    ):
        recording = RecordingSocket(socket)
        for frame in requests[:7]:
            results.append((await recording.ask(filled(frame, known)))["result"])
            known |= {name: results[-1][name] for name in ("table", "token") if name in results[-1]}
            if frame["method"] == "deck.shuffle":
                await recording.wait_for("DeckSealed")
        for frame in requests[7:]:  # refused, because this round takes no players' bytes
            assert (await recording.ask(filled(frame, known)))["error"]["code"] > 0
        play = {"table": known["table"], "cards": ["X1"]}
        refused = await recording.ask({"jsonrpc": "2.0", "method": "hand.play", "params": play})
        closing = {"jsonrpc": "2.0", "method": "round.close", "params": {"table": known["table"]}}
        await recording.ask(closing)
        practice["params"]["from"]["table"] = known["table"]
        practice["params"]["cmd"] += " another than that of the first table"
        opened = await recording.ask(practice)
    assert opened["result"].keys() >= {"table", "host_token", "version"}
    for line, result in zip(expected, results, strict=True):
        members = re.findall(r'[{,]"(\w+)":', line.split('"result":')[1])
        assert set(members) <= set(result), line
    (drawn,) = (frame for frame in recording.received if "CardDrawn" in json.dumps(frame))
    assert drawn["params"]["private"]["card"] == results[4]["cards"][0]
    (refusal,) = (line for line in lines if '"error"' in line)
    assert f'"code":{refused["error"]["code"]},' in refusal
    assert json.dumps(refused["error"]["data"], separators=(",", ":")) in refusal


class RecordingSocket:
    """A socket, and every frame that was received on it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.received: list[dict[str, Any]] = []
        self.sent = 0

    async def ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        self.sent += 1
        await self.socket.send(json.dumps(frame | {"id": self.sent}))
        while not self.received or self.received[-1].get("id") != self.sent:
            self.received.append(json.loads(await self.socket.recv()))
        return self.received[-1]

    async def wait_for(self, word: str) -> None:
        while not any(word in json.dumps(frame) for frame in self.received):
            self.received.append(json.loads(await self.socket.recv()))


def filled(frame: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """A frame of the guide with its abbreviated values filled in."""
    params = dict(frame["params"])
    for name, value in params.items():
        if name in ("digest", "nonce"):
            params[name] = "ab" * 32
        elif isinstance(value, str) and value.endswith("…"):
            params[name] = known.get(name, f"{frame['method']} for this test alone")
    return frame | {"params": params}


def table(section: str, document: str = DOCUMENT) -> list[list[str]]:
    """The cells of the rows of the one table in a section, without backticks."""
    text = document.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_the_close_codes_are_those_of_the_server():
    rows = {int(code): then for code, _, then in table("Close codes", PROTOCOL)}
    assert set(rows) == {int(code) for code in CloseCode}
    for code in CloseCode:
        final = "final" in code.meaning
        assert (rows[code] == "final") is final, code
        assert (int(code) in FINAL) is final, code
    reserved = set(FINAL) - set(rows)
    (code,) = re.findall(r"(\d+)\s+is\s+reserved", PROTOCOL)
    assert {int(code)} == reserved


def test_the_close_codes_that_are_final_are_the_same_in_both_clients():
    text = (WEB / "client" / "connection.js").read_text()
    (block,) = re.findall(r"const FINAL_CODES = \{(.*?)\};", text, re.DOTALL)
    assert {int(code) for code in re.findall(r"^  (\d+):", block, re.MULTILINE)} == set(FINAL)


def test_every_close_code_is_used():
    """A code that the server never sends does not belong to the list."""
    gateway = WEB.parent / "gateway"
    code = "".join(file.read_text() for file in gateway.rglob("*.py"))
    for one in CloseCode:
        assert re.search(
            rf"(close_with|FrameRefused)\(\s*CloseCode\.{one.name}|{one.name},\n", code
        ), one


def test_the_notifications_are_those_of_the_server():
    assert {row[0] for row in table("Notifications", PROTOCOL)} == set(notifications())


def test_the_limits_are_the_defaults():
    defaults = Limits()
    for name, default, beyond in table("Limits", PROTOCOL):
        assert float(default) == getattr(defaults, name), name
        for code in re.findall(r"closed with (\d+)", beyond):
            assert int(code) in set(CloseCode)
        for reason in re.findall(r"`(\w+)", beyond):
            assert reason in REFUSALS
    assert f"more than {defaults.resume:,} events are missing" in PROTOCOL
    assert (defaults.opening, defaults.tables) == (5.0, 16)  # also named in sentences


def test_the_rules_are_those_of_the_server():
    text = DOCUMENT.split("\n## Rules\n")[1].split("\n## ")[0].split("All other members")[0]
    named = set(re.findall(r"`(\w+)`", text))
    values = {*PRESETS, *WHO, "rules", "anyone", "invite", "house", "insecure"}
    assert named - values == set(KNOWN)
    assert f"{WAIT_MS_MIN} to {WAIT_MS_MAX:,}" in text
    assert f"1 to {SEATS_MAX}" in text
    assert f"{RULES_MAX:,} bytes of JSON" in DOCUMENT


def test_the_decks_are_those_of_the_server():
    for deck, _ in table("Cards"):
        given = json.loads(deck.replace(", …]", "]").replace("[…]", '["1a", "1b"]'))
        Rules.check({"deck": given})
        assert deck_codes(given)
    assert deck_codes({"decks": 8})[0] == "As.1"
    assert deck_codes({"decks": 12, "jokers": 1})[-1] == "X1.12"
    assert deck_codes("54")[-2:] == ("X1", "X2")
    assert f"1 to {SHOE_MAX} decks" in DOCUMENT
    assert f"1 to {DECK_MAX:,} different ones" in DOCUMENT


def test_every_method_that_is_named_exists():
    kinds = "|".join(sorted({name.partition(".")[0] for name in METHODS}))
    named = set(re.findall(rf"[`\"]((?:{kinds})\.[a-z_]+)[`\"]", PROTOCOL))
    assert named <= set(METHODS) | set(notifications())
    (listed,) = re.findall(r"^The methods:\n((?:.+\n)+)", PROTOCOL, re.MULTILINE)
    parts = [one.rpartition(".") for one in re.findall(r"`(.+?)`", listed)]
    methods = [f"{kind}{dot}{name}" for kind, dot, names in parts for name in names.split("|")]
    assert sorted(methods) == sorted(METHODS)


def test_the_table_of_commands_is_that_of_the_clients():
    """`python -m tests.web.client.command_table` writes it."""
    _, table, _ = command_table.parts()
    assert table == command_table.written()
    sent = command_table.sent_methods()
    automatic = {"entropy.commit", "entropy.reveal", "session.hello", "session.refresh", "ping"}
    of_services = {"seat.ticket", "feed.follow"}
    others = {"hand.return", "table.resume", "rpc.discover"}  # done by other calls, or for tools
    without = set(METHODS) - sent  # a new method may be called by its name, with `call`
    assert without >= automatic | of_services | others
    assert len(sent & set(METHODS)) > 20


def test_every_public_name_has_its_type():
    """The exports of client.js are declared in client.d.ts; tsc compares the classes' members."""
    code, types = (WEB / "client.js").read_text(), (WEB / "client.d.ts").read_text()
    lists = re.findall(r"^export \{(.*?)\}", code, re.DOTALL | re.MULTILINE)
    exported = {name.split(" as ")[-1].strip() for text in lists for name in text.split(",")}
    declared = set(re.findall(r"^export (?:function|class|const) (\w+)", types, re.MULTILINE))
    declared |= set(re.findall(r"^export \{ \w+ as (\w+) \};", types, re.MULTILINE))
    assert exported - {""} == declared


def test_the_download_command_names_every_module():
    (command,) = examples("sh", (WEB / "GENERATED.md").read_text())
    (names,) = re.findall(r"/client/\{([\w,]+)\}\.js", command)
    assert names.split(",") == sorted(path.stem for path in (WEB / "client").glob("*.js"))
