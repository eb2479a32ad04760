"""A program with the client, as a user would write it: it must type-check strictly."""

import asyncio
from pathlib import Path

import dealer
from dealer.client import Markers, Store
from dealer.errors import DatabaseError
from dealer.proof.verify import Report, verify


async def play(url: str) -> list[str]:
    policy = dealer.RetryPolicy(away=5.0)
    async with dealer.connect(url, name="Ada", patience=policy) as house:
        opened = await house.open(deck="52", seats=2, rules={"preset": "free"})
        table: dealer.RemoteTable = await house.join(opened)
        number: int = await table.round_open()
        shuffle_index: int = await table.shuffle()
        drawn: list[str] = await table.draw(2)
        await table.return_cards(drawn[0], where="bottom")
        await table.move("hand", to="discard", cards=drawn[1:])
        result = await table.call("table.note", kind="bet", text=f"{number} {shuffle_index}")
        print(result["version"])
        try:
            await table.deal(60, seats=[1])
        except dealer.DeckEmpty as refused:
            print(refused.reason, refused.code, refused.temporary)
        except (dealer.Refused, dealer.HouseCheated) as error:
            print(error)
        markers: Markers = table.markers
        print(markers.scores.get(1, 0), table.evidence, table.seats.get(1))
        async for version, at, event in table.events():
            print(version, at, type(event).__name__)
        return table.hand


def check(file: Path) -> bool:
    report: Report = verify(file.read_text("utf-8").splitlines(), key=None)
    for swap in report.swaps:
        print(swap.shuffle_index, swap.i, swap.j)
    return report.fault is None


def stored(folder: Path) -> list[str]:
    try:
        return Store(folder).tables()
    except (dealer.ConfigurationError, DatabaseError):
        return []


if __name__ == "__main__":
    asyncio.run(play("ws://localhost:8080/ws"))
