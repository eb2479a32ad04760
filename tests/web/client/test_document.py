"""The client's document: every example in it does what it says, at a real house."""

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

from dealer.client.line import SUBPROTOCOL
from tests.web.client.players import PATIENT, sockets
from tests.web.second import node

WEB = Path(__file__).parents[3] / "dealer" / "web"
DOCUMENT = (WEB / "CLIENT.md").read_text()
HOUSE = "ws://localhost:8080/ws"


def examples(language: str = "") -> list[str]:
    """The document's blocks in a language; without one, the frames."""
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
    """Where somebody has put the files that a house serves."""
    for name in ("client.js", "verify.js", "package.json"):
        shutil.copy(WEB / name, tmp_path / name)
    return tmp_path


async def test_python(real_house, tmp_path):
    (code,) = examples("python")
    (tmp_path / "example.py").write_text(code.replace(HOUSE, real_house.url))
    said = await output(sys.executable, "example.py", cwd=tmp_path)
    assert re.fullmatch(r"(\['\w\w', '\w\w'\]) \1 50\n", said)


async def test_javascript(real_house, folder):
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


async def test_a_terminal(real_house, folder):
    typing, one_line = examples("sh")
    command = typing.replace(HOUSE, real_house.url).split()
    assert command[0] == "python"
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    said = await output(sys.executable, *command[1:], cwd=folder, typed=ping)
    assert "Connected" in said
    said = await output("sh", "-c", one_line.replace(HOUSE, real_house.url), cwd=folder)
    assert re.search(r"^(\w\w ){4}\w\w$", said, re.MULTILINE)


async def test_the_frames(real_house):
    """What the primer sends is understood, and each answer has the members that it shows."""
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
        for frame in asked[6:]:  # this round takes no players' bytes: it is the form that is tried
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
    """A socket, and every frame that was heard on it."""

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
    """A frame of the document with what it leaves out."""
    params = dict(frame["params"])
    for name, value in params.items():
        if name in ("digest", "nonce"):
            params[name] = "ab" * 32
        elif isinstance(value, str) and value.endswith("…"):
            params[name] = known.get(name, f"{frame['method']} for this test alone")
    return frame | {"params": params}


def test_every_public_name_has_its_type():
    """What client.js exports, and what client.d.ts says it does."""
    code, types = (WEB / "client.js").read_text(), (WEB / "client.d.ts").read_text()
    pattern = r"^export (?:async )?(?:function|class) (\w+)"
    assert re.findall(pattern, code, re.MULTILINE)
    assert sorted(re.findall(pattern, code, re.MULTILINE)) == sorted(
        re.findall(pattern, types, re.MULTILINE)
    )
    for name in ("House", "RemoteTable"):
        body = re.search(rf"^class {name} {{\n(.*?)^}}", code, re.DOTALL | re.MULTILINE)
        typed = re.search(
            rf"^export interface {name} {{\n(.*?)^}}", types, re.DOTALL | re.MULTILINE
        )
        assert body is not None
        assert typed is not None
        members = r"^  (?:readonly |get |async )?(\w+)(?:<.*?>)?[(:]"
        public = set(re.findall(r"^  (?:get |async )?(\w+)\(", body[1], re.MULTILINE))
        assert public - {"constructor"} == set(re.findall(members, typed[1], re.MULTILINE))
