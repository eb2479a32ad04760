"""A receiver of webhooks: it answers, refuses, is slow, hangs and closes connections.

It checks each request: the signature, the event, and that the events of a table are in order, so
that none is sent before the receiver has accepted the one before it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64decode, b64encode
from random import Random
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dealer.webhooks.delivery import ED25519, HMAC
from tests.simulation.loop import Domain
from tests.simulation.network import ListeningSocket

if TYPE_CHECKING:
    from tests.simulation.world import World

PORT = 80
URL = "http://receiver/hook"


class Receiver:
    """`accepted` is the last version of each table that was answered with success.

    `ill` is the part of the requests that it does not answer well, until the faults end.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.domain = Domain("receiver")
        world.domains.append(self.domain)
        self.accepted: dict[str, int] = {}
        self.skipped: set[str] = set()
        self.verifier = ""
        self._random = Random(f"receiver {world.plan.seed}")
        self.ill = self._random.choice((0.0, 0.1, 0.5))
        self._socket: ListeningSocket | None = None

    def start(self, verifier: str) -> None:
        """Listen; requests are checked with this secret or public key."""
        self.verifier = verifier
        self.domain.context.copy().run(self._listen)

    def _listen(self) -> None:
        self._socket = ListeningSocket(self.world.network, self.domain, "receiver", PORT)
        context = self.domain.context.copy()
        self._socket.on_arrival(self._accept, (), context)

    def _accept(self) -> None:
        assert self._socket is not None
        loop = self.world.loop
        while True:
            try:
                accepted, _ = self._socket.accept()
            except BlockingIOError:
                return
            reader = asyncio.StreamReader(loop=loop)
            accepted.accept_into(asyncio.StreamReaderProtocol(reader, self._serve, loop=loop))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.split("\r\n")[1:-2]
                headers = {name.lower(): value for name, _, value in map(_parted, lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                if not await self._answer(headers, body, writer):
                    return
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer well or ill; whether the connection stays open."""
        event, random = json.loads(body), self._random
        self._check(headers, body, event)
        status = 204
        if not self.world.quiet and random.random() < self.ill:
            what = random.choice(("refuses", "slow", "slow", "hangs", "closes"))
            self.world.seen(f"receiver {what}")
            status = 503 if what == "refuses" else 204
            if what == "slow":
                await asyncio.sleep(random.choice((0.3, 3.0, 12.0)))
            elif what == "hangs":
                await asyncio.sleep(20.0)
                return False
            elif what == "closes":
                return False
        if status == 204:
            self._accepts(event)
        length = "" if status == 204 else "Content-Length: 0\r\n"
        writer.write(f"HTTP/1.1 {status} Status\r\n{length}\r\n".encode())
        await writer.drain()
        return random.random() < 0.9

    def _check(self, headers: dict[str, str], body: bytes, event: Any) -> None:
        world = self.world
        if not _signed(headers, body, self.verifier):
            world.fault(f"the webhook {headers['webhook-id']} is not signed")
        if headers["webhook-id"] != event["id"] or world.restores:
            return
        table, data = event["subject"], event["data"]
        if "event" not in data:
            self.skipped.add(table)  # what was archived before it was sent
            return
        version = data["version"]
        if version > self.accepted.get(table, 0) + 1 and table not in self.skipped:
            world.fault(f"the webhook of version {version} came after {self.accepted.get(table)}")
        leaf = body[body.index(b'"event":') + 8 : -2].decode()
        if leaf not in world.witness.ever.get((table, version), ()):
            world.fault(f"a webhook has a version {version} that is not in the log")

    def _accepts(self, event: Any) -> None:
        table, version = event["subject"], event["data"].get("version", 0)
        self.accepted[table] = max(version, self.accepted.get(table, 0))
        self.world.seen("webhook accepted")

    def missing(self) -> str:
        """The tables of which events were not delivered."""
        if not self.verifier or self.world.restores:
            return ""
        return ", ".join(
            f"{table[:8]} has {self.accepted.get(table, 0)} of {len(leaves)}"
            for table, leaves in self.world.witness.log.items()
            if table not in self.skipped and self.accepted.get(table, 0) < len(leaves)
        )


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(": ")


def _signed(headers: dict[str, str], body: bytes, verifier: str) -> bool:
    """Whether the signature is that of https://www.standardwebhooks.com/ for this verifier."""
    version, _, signature = headers["webhook-signature"].partition(",")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    kind, _, secret = verifier.partition("_")
    if kind == "whsec":
        expected = b64encode(hmac.digest(b64decode(secret), signed, "sha256")).decode()
        return version == HMAC and signature == expected
    try:
        key = Ed25519PublicKey.from_public_bytes(b64decode(secret))
        key.verify(b64decode(signature), signed)
    except InvalidSignature:
        return False
    return version == ED25519
