"""An auditor's SQL agrees with the log, and with the verifier's result."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import Report, verify
from tests.harness.card_truth import Leaf, faces, leaves
from tests.harness.server_process import ROOT, ServerProcess
from tests.harness.table_of_clients import connect_clients, play_everything, play_to_the_end

Row = tuple[Any, ...]

OF_THE_TABLE = "JOIN tables USING (stream) WHERE table_id = :table"


class Books:
    """A played table: its log, the verifier's result, and the database."""

    def __init__(self, file: Path, table: str, log: list[Leaf], report: Report) -> None:
        self.file = file
        self.table = table
        self.log = log
        self.report = report
        self.truth = faces(log)

    def ask(self, sql: str) -> list[Row]:
        with closing(sqlite3.connect(self.file)) as database:
            return database.execute(sql, {"table": self.table}).fetchall()

    def events(self, kind: str) -> list[Leaf]:
        return [leaf for leaf in self.log if leaf["type"] == kind]

    def card(self, leaf: Leaf) -> str:
        return self.truth[leaf["public"]["round"], leaf["public"]["slot"]]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    return asyncio.run(play(tmp_path_factory.mktemp("books")))


async def play(folder: Path) -> Books:
    async with ServerProcess(folder) as server, connect_clients(server.url) as clients:
        await clients.sit_down(seats=4)
        await play_everything(clients)
        await play_to_the_end(clients)
        bundle = read(await server.bundle(clients.id))
        await server.projected()
        return Books(server.database, clients.id, leaves(bundle), verify(bundle))


def test_who_drew_which_card_when(books: Books) -> None:
    names = {leaf["public"]["seat"]: leaf["public"]["name"] for leaf in books.events("SeatTaken")}
    assert books.ask(
        'SELECT version, at, round, seat, player, source, slot, card FROM draws '
        "WHERE table_id = :table ORDER BY version"
    ) == [
        (
            leaf["version"], leaf["at"], leaf["public"]["round"], leaf["public"]["seat"],
            names[leaf["public"]["seat"]], leaf["public"]["from"], leaf["public"]["slot"],
            books.card(leaf),
        )
        for leaf in books.events("CardDrawn")
    ]  # fmt: skip
    drawn = Counter(names[leaf["public"]["seat"]] for leaf in books.events("CardDrawn"))
    assert drawn == dict(
        books.ask("SELECT player, count(*) FROM draws WHERE table_id = :table GROUP BY player")
    )


def test_every_swap_is_the_one_that_the_verifier_reckons(books: Books) -> None:
    found = books.ask(
        "SELECT version, round, k, step, i, j, card_i, card_j FROM swaps "
        f"{OF_THE_TABLE} ORDER BY version"
    )
    assert found == [
        (swap.version, swap.round, swap.k, swap.step, swap.i, swap.j, *swap.cards)
        for swap in books.report.swaps
    ]
    assert len(found) == len(books.events("CardsSwapped"))


def test_shuffles(books: Books) -> None:
    remarks = books.report.remarks
    rows = books.ask(
        f"SELECT outcome, count(*), sum(revealed), sum(steps) FROM shuffles {OF_THE_TABLE} "
        "GROUP BY outcome"
    )
    reveals = len(books.events("EntropyRevealed"))
    assert rows == [("sealed", remarks.shuffles, reveals, len(books.events("CardsSwapped")))]


def test_rounds_and_seats(books: Books) -> None:
    assert books.ask(
        f"SELECT round, entropy, cards, secret, since, until FROM rounds {OF_THE_TABLE}"
        " ORDER BY round"
    ) == [
        (
            opened["public"]["round"], opened["public"]["entropy"], len(opened["public"]["deck"]),
            closed["public"]["secret"], opened["version"], closed["version"],
        )
        for opened, closed in zip(
            books.events("RoundOpened"), books.events("RoundClosed"), strict=True
        )
    ]  # fmt: skip
    left = {leaf["public"]["seat"]: leaf["version"] for leaf in books.events("SeatLeft")}
    assert books.ask(
        f"SELECT seat, player, since, until FROM seats {OF_THE_TABLE} ORDER BY since"
    ) == [
        (seat, leaf["public"]["name"], leaf["version"], left.get(seat))
        for leaf in books.events("SeatTaken")
        for seat in (leaf["public"]["seat"],)
    ]


def test_every_card_lies_in_one_place(books: Books) -> None:
    """At the end of its round: hands, deck and piles."""
    opened = [leaf["public"] for leaf in books.events("RoundOpened")]
    lying = defaultdict(list)
    for model in ("deck", "hands", "piles"):
        rows = books.ask(f"SELECT round, slot, card FROM {model} {OF_THE_TABLE}")
        for round_, slot, card in rows:
            assert books.truth[round_, slot] == card
            lying[round_].append(card)
    assert {round_: sorted(cards) for round_, cards in lying.items()} == {
        one["round"]: sorted(one["deck"]) for one in opened
    }
    moved = books.ask(
        f"SELECT version, source, target, target_place, card FROM moves {OF_THE_TABLE} "
        "AND event = 'CardMoved' ORDER BY version"
    )
    assert moved == [
        (leaf["version"], public["from"], public["to"], public["place"], books.card(leaf))
        for leaf in books.events("CardMoved")
        for public in (leaf["public"],)
    ]


def test_the_log_itself(books: Books) -> None:
    """The events are rows, one for each leaf, and no statement changes or removes one."""
    rows = books.ask(
        f"SELECT version, at, type, schema, public FROM event {OF_THE_TABLE} ORDER BY version"
    )
    assert [(*row[:4], json.loads(row[4])) for row in rows] == [
        (leaf["version"], leaf["at"], leaf["type"], leaf["v"], leaf["public"]) for leaf in books.log
    ]
    for statement in ("UPDATE event SET at = 0", "DELETE FROM event WHERE version = 1"):
        with pytest.raises(sqlite3.IntegrityError, match="event"):
            books.ask(statement)


def test_the_documented_statements(books: Books) -> None:
    """The SQL in OPERATING.md runs as it is printed and returns rows."""
    document = (ROOT / "dealer" / "cli" / "OPERATING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sql\n(.*?)```", document, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        for statement in filter(None, map(str.strip, block.split(";"))):
            assert books.ask(statement), statement
