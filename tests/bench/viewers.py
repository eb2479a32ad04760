"""What it costs to show a table to many: `python tests/bench/viewers.py [COUNT] [DRAWS] [TURNS]`.

COUNT connections (1,000) watch one table, as spectators or by its broadcast link, while a player
draws DRAWS cards (40), one each 0.3 s, so that each is a frame of its own for either of them.
Prints the processor time of the server, user and system, for a draw and a connection that watches,
less that without them: the median of TURNS (3) turns, each of which measures all three.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from server import alone

from tests.gateway.rpc_client import RpcClient

PAUSE = 0.3
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = ("none", "spectators", "broadcast")


def cpu_seconds(process: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(kind: str, count: int, draws: int) -> float:
    """Seconds of the server for these draws, on a server of its own."""
    with alone() as server:
        player = await RpcClient.connect(server.port)
        opened = await player.call("table.open", rules={"broadcast": 0})
        await player.call("table.join", table=opened["table"], name="Ann")
        await player.call("round.open", entropy="house")
        await player.call("deck.shuffle")
        given = {"table": opened["table"]}
        if kind == "broadcast":
            given["link"] = (await player.call("broadcast.link"))["link"]
        watching = []
        for _ in range(0 if kind == "none" else count):
            client = await RpcClient.connect(server.port)
            await client.call("table.watch", **given)
            watching.append(client)
        before = cpu_seconds(server.process.pid)
        for _ in range(draws):
            drawn = await player.call("deck.draw")
            await asyncio.sleep(PAUSE)
        for client in watching:
            await client.until_version(drawn["version"])
        spent = cpu_seconds(server.process.pid) - before
        await asyncio.gather(*(client.close() for client in (player, *watching)))
        return spent


async def main(count: int = 1000, draws: int = 40, turns: int = 3) -> None:
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(turns):
        for kind in KINDS:
            spent[kind].append(await measure(kind, count, draws))
    base = statistics.median(spent["none"])
    for kind in KINDS[1:]:
        each = [(seconds - base) / draws / count * 1e6 for seconds in spent[kind]]
        shown = ", ".join(f"{one:.1f}" for one in each)
        print(f"{kind}: {statistics.median(each):.1f} µs a draw and connection ({shown})")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
