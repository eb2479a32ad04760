"""Grammar-based fuzzing of the gateway: each request is answered once, and nothing leaks.

    python tests/chaos/fuzz.py 1000000

Most messages go to sessions without a socket, one in fifty over WebSocket connections. After every
hundred: each request with an id has exactly one answer, no connection was closed without a reason,
no error shows a token or a card, and the server's log has no internal error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import secrets
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.asyncio.client import connect

from dealer.gateway import Gateway, Limits, serve
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.wire.protocol import is_utf8
from dealer.service.build import open_service
from tests.chaos.fuzz_grammar import Context, Grammar
from tests.harness.limits import NO_RATES
from tests.harness.load_clients import SocketClient, SocketlessClient
from tests.harness.script import run

BATCH = 100
PER_TABLE = 3000
"""Messages after which another table is opened."""

SOCKETS = 0.02
SUPERSEDED = 4409
LIMITS = Limits(**NO_RATES, automatic_rate=1e9, automatic_burst=1e9, tables=64)


@dataclass
class Figures:
    """`owed` are the requests with a readable id."""

    messages: int = 0
    over_sockets: int = 0
    owed: int = 0
    granted: int = 0
    refused: int = 0
    unreadable: int = 0
    superseded: int = 0
    not_utf8: int = 0
    tables: int = 0
    versions: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class ErrorCollector(logging.Handler):
    """Collects the server's log records of internal errors."""

    def __init__(self, figures: Figures) -> None:
        super().__init__(logging.ERROR)
        self._figures = figures

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter().format(record)
        self._figures.faults.append(f"the server's log has: {text[-1500:]}")


async def fuzz(folder: Path, *, messages: int, seed: int) -> Figures:
    """Send this many messages; stop at the first fault."""
    figures, chance = Figures(), random.Random(seed)
    collector, begun = ErrorCollector(figures), time.monotonic()
    logging.getLogger().addHandler(collector)
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: figures.faults.append(f"unhandled: {context}")
    )
    try:
        async with (
            open_service(f"sqlite:///{folder}/dealer.db", synchronous="NORMAL") as service,
            serve(service, port=0, limits=LIMITS) as gateway,
        ):
            while figures.messages < messages and not figures.faults:
                await one_table(gateway, messages, chance, figures)
    finally:
        logging.getLogger().removeHandler(collector)
    figures.seconds = round(time.monotonic() - begun, 1)
    return figures


async def one_table(
    gateway: Gateway, messages: int, chance: random.Random, figures: Figures
) -> None:
    """Fuzz one table with its host, two players and a client without a seat."""
    figures.tables += 1
    context = gateway.context
    cards = [secrets.token_urlsafe(6) for _ in range(30)]
    clients: list[SocketlessClient | SocketClient] = [SocketlessClient(context) for _ in range(4)]
    opened = await call(clients[0], "table.open", seats=6, deck=cards, rules={"entropy": "house"})
    table = opened["table"]
    tokens = [opened["host_token"]]
    for player, name in zip(clients[1:3], ("Ada", "Bob"), strict=True):
        tokens.append((await call(player, "table.join", table=table, name=name))["token"])
    hidden = [text.encode() for text in (*cards, *tokens, opened["invite"])]
    secret = re.compile(b"|".join(map(re.escape, hidden)))
    grammar = Grammar(Context(table, tokens, cards), chance)
    for method, params in (("round.open", {}), ("deck.shuffle", {}), ("deck.deal", {"each": 3})):
        await call(clients[0], method, table=table, **params)
    for _ in range(PER_TABLE // BATCH):
        if figures.messages >= messages or figures.faults:
            break
        place = chance.randrange(len(clients))
        if not figures.over_sockets or chance.random() < SOCKETS:
            socket = await connect(f"ws://127.0.0.1:{gateway.port}/ws", compression=None)
            client: SocketlessClient | SocketClient = SocketClient(context, socket)
            figures.over_sockets += min(BATCH, messages - figures.messages)
        else:
            client = clients[place]
        await send_hundred(client, grammar, secret, messages, figures)
        live_table = gateway.context.service.tables.get(table)
        grammar.context.version = 0 if live_table is None else live_table.committed
        if isinstance(client, SocketClient):
            await client.leave()
        elif client.ended is not None:
            clients[place] = SocketlessClient(context)
    figures.versions += grammar.context.version
    for one in clients:
        await one.leave()


async def call(client: SocketlessClient | SocketClient, method: str, **params: Any) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (answer,) = await client.deliver([json.dumps(request).encode()])
    return json.loads(answer)["result"]


async def send_hundred(
    client: SocketlessClient | SocketClient,
    grammar: Grammar,
    secret: re.Pattern[bytes],
    messages: int,
    figures: Figures,
) -> None:
    """Send a hundred messages on one connection and check the answers."""
    upto = min(messages, figures.messages + BATCH)
    frames = [grammar.frame(f"f{number}") for number in range(figures.messages, upto)]
    figures.messages = upto
    try:
        async with asyncio.timeout(60):
            answers = await client.deliver(frames)
    except TimeoutError:
        figures.faults.append(f"not all of {frames} were answered")
        return
    for answer in answers:
        if b'"error":' in answer and (found := secret.search(answer)):
            figures.faults.append(f"{found[0]!r} is shown in {answer!r}")
        figures.granted += b'"result":' in answer
        figures.refused += b'"error":' in answer
    if client.ended is None:
        count_answers(frames, answers, figures)
    elif client.ended == SUPERSEDED:
        figures.superseded += 1
    elif client.ended == CloseCode.INVALID_DATA and not all(map(is_utf8, frames)):
        figures.not_utf8 += 1
    else:
        figures.faults.append(f"the connection was ended with {client.ended} after {frames}")


def count_answers(frames: list[bytes], answers: list[bytes], figures: Figures) -> None:
    """Check that each readable request has one answer, and that there are no others."""
    got = Counter(json.dumps(json.loads(answer)["id"]) for answer in answers)
    owed: Counter[str] = Counter()
    anonymous = quiet = 0
    for frame in frames:
        id, readable = id_of(frame)
        if readable and id is not None:
            owed[id] += 1
        elif readable or b'"id"' not in frame:
            quiet += 1  # a notification, or a part of one
        else:
            anonymous += 1
    figures.owed += owed.total()
    figures.unreadable += anonymous
    # A frame with more faults than its id may be answered without it.
    nameless = got.pop("null", 0) - owed.pop("null", 0)
    missing, strange = owed - got, got - owed
    nameless -= missing.total()
    twice = strange.keys() & owed.keys()
    if twice or not 0 <= nameless + strange.total() <= anonymous + quiet:
        figures.faults.append(f"missing {missing}, too many {strange}: {frames}")
    elif nameless + strange.total() < anonymous:
        unreadable = [frame for frame in frames if not id_of(frame)[1]]
        figures.faults.append(f"{anonymous} unreadable, {nameless} answers: {unreadable}")


def id_of(frame: bytes) -> tuple[str | None, bool]:
    """The id as JSON text, None if there is none; and whether it could be read."""
    try:
        request = json.loads(frame.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None, False
    if not isinstance(request, dict):
        return None, False
    if "id" not in request:
        return None, True
    id = request["id"]
    known = id is None or isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool))
    return json.dumps(id), known


def _refuse(text: str) -> None:
    raise ValueError(text)


if __name__ == "__main__":
    sys.exit(run(__doc__, fuzz, count="messages", default=1_000_000))
