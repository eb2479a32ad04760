"""Every example of the client guide works against a real server."""

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

from dealer.client.socket import SUBPROTOCOL
from tests.web.client.node_client import PATIENT, sockets
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

WEB = Path(__file__).parents[3] / "dealer" / "web"
DOCUMENT = (WEB / "CLIENT.md").read_text()
HOUSE = "ws://localhost:8080/ws"


def examples(language: str = "") -> list[str]:
    """The guide's code blocks in a language; without one, the frames."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    found = [text for name, text in fenced if name == language]
    assert found
    return found


async def output(*command: str, cwd: Path, typed: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=STDOUT
    )
    async with asyncio.timeout(PATIENT):
        said, _ = await process.communicate(typed.encode())
    assert process.returncode == 0, said.decode()
    return said.decode()


@pytest.fixture
def folder(tmp_path):
    """A folder with a copy of the client."""
    for name in ("client.js", "verify.js", "package.json"):
        shutil.copy(WEB / name, tmp_path / name)
    shutil.copytree(WEB / "client", tmp_path / "client")
    return tmp_path


async def test_the_python_example(real_house, tmp_path):
    (code,) = examples("python")
    (tmp_path / "example.py").write_text(code.replace(HOUSE, real_house.url))
    said = await output(sys.executable, "example.py", cwd=tmp_path)
    assert re.fullmatch(r"(\['\w\w', '\w\w'\]) \1 50\n", said)


async def test_the_javascript_examples(real_house, folder):
    first, second = examples("js")
    said = []
    for code in (first, second):
        (folder / "example.js").write_text(code.replace(HOUSE, real_house.url))
        said.append(await output(node(), *sockets(), "example.js", cwd=folder))
    assert re.match(r"\[ '\w\w', '\w\w' \] \[ '\w\w', '\w\w' \] 50\n", said[0])
    assert said[0].endswith(
        "entropy: yes, commitment: yes, seal: yes, cards: yes, roots: yes, "
        "signatures: yes, moves: yes, round: yes\n"
    )
    assert re.search(r"\d+ CardDrawn face down\n\d+ CardDrawn \w\w\n", said[1])
    assert "undefined" not in said[1]


async def test_the_terminal_examples(real_house, folder):
    download, typing, one_line = examples("sh")
    assert download.startswith("curl ")
    command = typing.replace(HOUSE, real_house.url).split()
    assert command[0] == "python"
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    said = await output(sys.executable, *command[1:], cwd=folder, typed=ping)
    assert "Connected" in said
    said = await output("sh", "-c", one_line.replace(HOUSE, real_house.url), cwd=folder)
    assert re.search(r"^(\w\w ){4}\w\w$", said, re.MULTILINE)


async def test_the_frames_of_the_protocol_examples(real_house):
    """The server accepts the frames, and its answers have the members that the guide shows."""
    lines = "".join(examples()).splitlines()
    asked = [json.loads(line[2:]) for line in lines if line.startswith("> ")]
    shown = [line for line in lines if '"result"' in line]
    known: dict[str, str] = {}
    results: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENT), dial(real_house.url, subprotocols=[SUBPROTOCOL]) as socket:
        house = Talk(socket)
        for frame in asked[:6]:
            results.append((await house.ask(filled(frame, known)))["result"])
            known |= {name: results[-1][name] for name in ("table", "token") if name in results[-1]}
            if frame["method"] == "deck.shuffle":
                await house.hear("DeckSealed")
        for frame in asked[6:]:  # refused, because this round takes no players' bytes
            assert (await house.ask(filled(frame, known)))["error"]["code"] > 0
        play = {"table": known["table"], "cards": ["X1"]}
        refused = await house.ask({"jsonrpc": "2.0", "method": "hand.play", "params": play})
    for line, result in zip(shown, results, strict=True):
        members = re.findall(r'[{,]"(\w+)":', line.split('"result":')[1])
        assert set(members) <= set(result), line
    (drawn,) = (frame for frame in house.heard if "CardDrawn" in json.dumps(frame))
    assert drawn["params"]["private"]["card"] == results[4]["cards"][0]
    (refusal,) = (line for line in lines if '"error"' in line)
    assert f'"code":{refused["error"]["code"]},' in refusal
    assert json.dumps(refused["error"]["data"], separators=(",", ":")) in refusal


class Talk:
    """A socket, and every frame that was received on it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self.asked = 0

    async def ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        await self.socket.send(json.dumps(frame | {"id": self.asked}))
        while not self.heard or self.heard[-1].get("id") != self.asked:
            self.heard.append(json.loads(await self.socket.recv()))
        return self.heard[-1]

    async def hear(self, word: str) -> None:
        while not any(word in json.dumps(frame) for frame in self.heard):
            self.heard.append(json.loads(await self.socket.recv()))


def filled(frame: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """A frame of the guide with its abbreviated values filled in."""
    params = dict(frame["params"])
    for name, value in params.items():
        if name in ("digest", "nonce"):
            params[name] = "ab" * 32
        elif isinstance(value, str) and value.endswith("…"):
            params[name] = known.get(name, f"{frame['method']} for this test alone")
    return frame | {"params": params}


def test_every_public_name_has_its_type():
    """The exports of client.js are declared in client.d.ts; tsc compares the classes' members."""
    code, types = (WEB / "client.js").read_text(), (WEB / "client.d.ts").read_text()
    lists = re.findall(r"^export \{(.*?)\}", code, re.DOTALL | re.MULTILINE)
    exported = {name.split(" as ")[-1].strip() for text in lists for name in text.split(",")}
    declared = set(re.findall(r"^export (?:function|class) (\w+)", types, re.MULTILINE))
    declared |= set(re.findall(r"^export \{ \w+ as (\w+) \};", types, re.MULTILINE))
    assert exported - {""} == declared


def test_the_download_command_names_every_module():
    (command,) = (text for text in examples("sh") if text.startswith("curl "))
    (names,) = re.findall(r"/client/\{([\w,]+)\}\.js", command)
    assert names.split(",") == sorted(path.stem for path in (WEB / "client").glob("*.js"))
