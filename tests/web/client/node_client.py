"""JavaScript clients in a node process that a test controls."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

from tests.harness.installed import missing
from tests.harness.programs import output_of
from tests.web.js_verifier import node

SCRIPT = Path(__file__).with_name("node_client.mjs")
LINE_MAX = 64 * 2**20
TIMEOUT = 60.0
"""Timeout in seconds of everything that a test waits for."""
FAST = {"backoff": 10, "backoffMax": 50, "away": 20_000, "answer": 5_000}
"""A retry policy with short delays."""


class JsError(Exception):
    """What the client threw: its class's name, and members such as `reason`, `code`, `check`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['name']}: {error['message']}")
        self.name = error["name"]
        self.message = error["message"]
        self.reason = error.get("reason")
        self.code = error.get("code")
        self.check = error.get("check")
        self.evidence = error.get("evidence")


class NodeClient:
    """`run` evaluates JavaScript with the client; values that must last are stored in `its`."""

    def __init__(self, *how: str) -> None:
        """`how` may be `plain`: without WebCrypto, as on a page over plain http."""
        self._how = how

    async def __aenter__(self) -> NodeClient:
        self._process = await asyncio.create_subprocess_exec(
            node(), *sockets(), str(SCRIPT), *self._how, stdin=PIPE, stdout=PIPE, limit=LINE_MAX
        )
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader

    async def run(self, js: str, **args: Any) -> Any:
        """Run the function body `js`; returns its value as JSON, with maps as objects."""
        async with asyncio.timeout(TIMEOUT):
            return await self.begin(js, **args)

    def begin(self, js: str, **args: Any) -> asyncio.Future[Any]:
        """Start the function body `js`; returns a future of its value."""
        assert self._process.stdin is not None
        number = len(self._pending) + 1
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": number, "js": js, "args": args})
        self._process.stdin.write(f"{line}\n".encode())
        return future

    async def connect(self, name: str, url: str, /, **options: Any) -> None:
        """Set `its.<name>` to a `House` connected to `url`; the option `folder` is its store's."""
        js = """
            const { as, url, folder, ...options } = args;
            if (folder) options.store = await client.fileStore(folder);
            its[as] = await client.connect(url, options);
        """
        given = {"name": name.capitalize(), "retry": FAST} | options
        await self.run(js, **{"as": name, "url": url, **given})

    async def sit(self, *names: str, url: str, **rules: Any) -> str:
        """Seat these players at a new table, as `its.<name>`; returns the table's id."""
        for name in names:
            await self.connect(f"{name}House", url, name=name.capitalize())
        await self.run(
            "its.table = (await its[`${args.first}House`].open({ rules: args.rules })).id",
            first=names[0],
            rules=rules,
        )
        for name in names:
            await self.run(
                "its[args.who] = await its[`${args.who}House`].join(its.table)", who=name
            )
        return str(await self.run("return its.table"))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            future = self._pending[answer["id"]]
            if future.done():
                continue
            if "error" in answer:
                future.set_exception(JsError(answer["error"]))
            else:
                future.set_result(answer["result"])
        for future in self._pending.values():
            if not future.done():
                future.set_exception(AssertionError("node ended before it answered"))
                future.exception()


def sockets() -> list[str]:
    """The options with which node has a WebSocket; none from node 22 on."""
    major = int(output_of(node(), "--version").lstrip("v").split(".")[0])
    if major < 20:
        missing("node is older than 20")
    flags = ["--no-warnings"]
    return flags if major >= 22 else [*flags, "--experimental-websocket"]
