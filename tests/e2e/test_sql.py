"""The results of an auditor's SQL agree with the log and with the verifier's report."""

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

JOIN_TABLE = "JOIN tables USING (stream) WHERE table_id = :table"


class PlayedTable:
    """A played table: its log, the verifier's report, and the database."""

    def __init__(self, file: Path, table: str, log: list[Leaf], report: Report) -> None:
        self.file = file
        self.table = table
        self.log = log
        self.report = report
        self.truth = faces(log)

    def query(self, sql: str) -> list[Row]:
        with closing(sqlite3.connect(self.file)) as database:
            return database.execute(sql, {"table": self.table}).fetchall()

    def events(self, kind: str) -> list[Leaf]:
        return [leaf for leaf in self.log if leaf["type"] == kind]

    def card(self, leaf: Leaf) -> str:
        return self.truth[leaf["public"]["round"], leaf["public"]["slot"]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> PlayedTable:
    return asyncio.run(play(tmp_path_factory.mktemp("played")))


async def play(folder: Path) -> PlayedTable:
    async with ServerProcess(folder) as server, connect_clients(server.url) as clients:
        await clients.sit_down(seats=4)
        await play_everything(clients)
        await play_to_the_end(clients)
        bundle = read(await server.bundle(clients.id))
        await server.projected()
        return PlayedTable(server.database, clients.id, leaves(bundle), verify(bundle))


def test_draws_have_player_card_and_time(played: PlayedTable) -> None:
    names = {leaf["public"]["seat"]: leaf["public"]["name"] for leaf in played.events("SeatTaken")}
    assert played.query(
        'SELECT version, at, round, seat, player, source, slot, card FROM draws '
        "WHERE table_id = :table ORDER BY version"
    ) == [
        (
            leaf["version"], leaf["at"], leaf["public"]["round"], leaf["public"]["seat"],
            names[leaf["public"]["seat"]], leaf["public"]["from"], leaf["public"]["slot"],
            played.card(leaf),
        )
        for leaf in played.events("CardDrawn")
    ]  # fmt: skip
    drawn = Counter(names[leaf["public"]["seat"]] for leaf in played.events("CardDrawn"))
    assert drawn == dict(
        played.query("SELECT player, count(*) FROM draws WHERE table_id = :table GROUP BY player")
    )


def test_swaps_are_those_that_the_verifier_computes(played: PlayedTable) -> None:
    found = played.query(
        "SELECT version, round, k, step, i, j, card_i, card_j FROM swaps "
        f"{JOIN_TABLE} ORDER BY version"
    )
    assert found == [
        (swap.version, swap.round, swap.shuffle_index, swap.step, swap.i, swap.j, *swap.cards)
        for swap in played.report.swaps
    ]
    assert len(found) == len(played.events("CardsSwapped"))


def test_shuffles(played: PlayedTable) -> None:
    remarks = played.report.remarks
    rows = played.query(
        f"SELECT outcome, count(*), sum(revealed), sum(steps) FROM shuffles {JOIN_TABLE} "
        "GROUP BY outcome"
    )
    reveals = len(played.events("EntropyRevealed"))
    assert rows == [("sealed", remarks.shuffles, reveals, len(played.events("CardsSwapped")))]


def test_rounds_and_seats(played: PlayedTable) -> None:
    assert played.query(
        f"SELECT round, entropy, cards, secret, since, until FROM rounds {JOIN_TABLE}"
        " ORDER BY round"
    ) == [
        (
            opened["public"]["round"], opened["public"]["entropy"], len(opened["public"]["deck"]),
            closed["public"]["secret"], opened["version"], closed["version"],
        )
        for opened, closed in zip(
            played.events("RoundOpened"), played.events("RoundClosed"), strict=True
        )
    ]  # fmt: skip
    left = {leaf["public"]["seat"]: leaf["version"] for leaf in played.events("SeatLeft")}
    assert played.query(
        f"SELECT seat, player, since, until FROM seats {JOIN_TABLE} ORDER BY since"
    ) == [
        (seat, leaf["public"]["name"], leaf["version"], left.get(seat))
        for leaf in played.events("SeatTaken")
        for seat in (leaf["public"]["seat"],)
    ]


def test_every_card_is_in_one_stack(played: PlayedTable) -> None:
    """At the end of its round: hands, deck and piles."""
    opened = [leaf["public"] for leaf in played.events("RoundOpened")]
    found = defaultdict(list)
    for model in ("deck", "hands", "piles"):
        rows = played.query(f"SELECT round, slot, card FROM {model} {JOIN_TABLE}")
        for round_, slot, card in rows:
            assert played.truth[round_, slot] == card
            found[round_].append(card)
    assert {round_: sorted(cards) for round_, cards in found.items()} == {
        one["round"]: sorted(one["deck"]) for one in opened
    }
    moved = played.query(
        f"SELECT version, source, target, target_place, card FROM moves {JOIN_TABLE} "
        "AND event = 'CardMoved' ORDER BY version"
    )
    assert moved == [
        (leaf["version"], public["from"], public["to"], public["place"], played.card(leaf))
        for leaf in played.events("CardMoved")
        for public in (leaf["public"],)
    ]


def test_the_log_has_the_leaves(played: PlayedTable) -> None:
    """The events are rows, one for each leaf, and no statement changes or removes one."""
    rows = played.query(
        f"SELECT version, at, type, schema, public FROM events {JOIN_TABLE} ORDER BY version"
    )
    assert [(*row[:4], json.loads(row[4])) for row in rows] == [
        (leaf["version"], leaf["at"], leaf["type"], leaf["v"], leaf["public"])
        for leaf in played.log
    ]
    for statement in ("UPDATE event SET at = 0", "DELETE FROM event WHERE version = 1"):
        with pytest.raises(sqlite3.IntegrityError, match="event"):
            played.query(statement)


def test_the_documented_statements(played: PlayedTable) -> None:
    """The queries of README and REFERENCE.md return the columns and rows that they show."""
    document = (ROOT / "dealer" / "cli" / "REFERENCE.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sql\n(SELECT.*?)```\n```\n(.*?)\n", document, re.DOTALL)
    assert len(blocks) == 2
    for statement, shown in blocks:
        assert {len(row) for row in played.query(statement)} == {len(shown.split())}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r'`sqlite3 -box dealer\.db "(SELECT [^`]*)"`', readme)
    assert len(played.query(statement)) == 5
