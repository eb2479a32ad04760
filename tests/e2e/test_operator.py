"""The files of a server during a round, read by an operator or a thief, reveal no card or swap."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import defaultdict
from hashlib import sha256

from dealer.game.cards import build
from dealer.proof.bundle import read
from dealer.proof.concatenation import T, be32, be64, lp
from tests.harness.card_truth import faces, leaves, round_keys
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import Clients, connect_clients, play_everything

MARKED = [f"<<{code}>>" for code in build()]
"""Codes that no hash and no ciphertext contains by chance."""


async def files_during_the_round(server: ServerProcess, clients: Clients) -> dict[str, bytes]:
    """Every file of the server, except its key, and its log."""
    await clients.all_caught_up()
    await server.projected()
    folder = server.database.parent
    found = {file.name: file.read_bytes() for file in folder.glob("dealer.db*")}
    assert set(found) >= {"dealer.db", "dealer.db-wal", "dealer.db.key"}
    return found | {server.output.name: server.output.read_bytes()}


async def test_the_files_of_a_running_round_reveal_no_card(server: ServerProcess) -> None:
    async with connect_clients(server.url) as clients:
        await clients.sit_down(deck=MARKED)
        await play_everything(clients)
        disk = await files_during_the_round(server, clients)
        hands = {code for player in clients.players for code in player.table.hand}
        key = disk.pop("dealer.db.key")
        await clients.tables[0].round_close()
        log = leaves(read(await server.bundle(clients.id)))
    truth, keys = faces(log), round_keys(log)[1]
    shown = {leaf["public"]["card"] for leaf in log if leaf["type"] == "CardShown"}
    assert hands - shown
    for name, data in disk.items():
        readable = {code for code in MARKED if outside_the_list(data, code)}
        assert readable <= shown, f"{name} holds {readable - shown}"
        assert key not in data
        secret = bytes.fromhex(log[-1]["public"]["secret"])
        assert secret not in data
        assert secret.hex().encode() not in data
        for number, slot in truth:
            salt = keys.slot_salt(slot)
            public = truth[number, slot] in shown and salt.hex() in str(log)
            assert salt not in data
            assert public or salt.hex().encode() not in data


def outside_the_list(data: bytes, code: str) -> bool:
    """Whether `data` has a code in another place than the list of the deck.

    A page of the database may end within the list, so either neighbour is enough.
    """
    place = MARKED.index(code)
    before = f'{MARKED[place - 1]}","' if place else '["'
    after = f'","{MARKED[place + 1]}' if place + 1 < len(MARKED) else '"]'
    found = re.compile(
        b"(?<!%b)%b(?!%b)" % tuple(re.escape(one.encode()) for one in (before, code, after))
    )
    return found.search(data) is not None


async def test_plain_codes_are_only_in_the_list_of_the_deck(server: ServerProcess) -> None:
    """The usual codes as JSON or SQL would contain them."""
    async with connect_clients(server.url, names=("Ada", "Bob")) as clients:
        await clients.sit_down()
        ada, bob = clients.tables
        await ada.round_open()
        await ada.shuffle()
        await ada.deal(5)
        await bob.until(lambda table: len(table.hand) == 5)
        await bob.discard(bob.hand[:2])
        await bob.give(bob.hand[0], to=1)
        await bob.show(bob.hand[0], to=1)
        disk = await files_during_the_round(server, clients)
        with sqlite3.connect(server.database) as database:
            rows = database.execute("SELECT type, public, hidden, digest FROM events").fetchall()
            kept = database.execute("SELECT version, public, commitment, digest FROM events")
            guess_everything(bytes.fromhex(clients.id), kept.fetchall())
            models = [
                row
                for model in ("swaps", "moves", "deck", "hands", "piles")
                for row in database.execute(f"SELECT * FROM {model}")
            ]
    disk.pop("dealer.db.key")
    quoted = re.compile(rb"\"([A23456789TJQK][shdc])\"")
    deck = ",".join(f'"{code}"' for code in build()).encode()
    for data in disk.values():
        assert quoted.findall(data.replace(deck, b"")) == []
        # The definition of the view `events` has the member's name.
        assert re.findall(rb"\"card\"(?!:' \|\|)|\"j\"", data) == []
    for kind, public, *_ in rows:
        assert ('"As"' in public) == (kind == "RoundOpened")
    assert len(models) > 52
    assert not [cell for row in models for cell in row if cell in build()]
    check_lengths(rows)


def guess_everything(table: bytes, kept: list[tuple[int, str, bytes | None, bytes | None]]) -> None:
    """No guess of a card or of j gives any of the stored hashes.

    A hash without a salt, or with a salt that is in the database, would be found.
    """
    hashes: set[bytes] = set()
    for _, public, commitment, digest in kept:
        hashes.update(part for part in (commitment, digest and digest[:32]) if part)
        hashes.update(map(bytes.fromhex, json.loads(public).get("slots", ())))
    assert len(hashes) > 100
    slots = [be32(slot) for slot in range(52)]
    versions = [be64(version) for version, *_ in kept]
    texts = [f'{{"card":"{code}"}}' for code in build()] + [f'{{"j":{j}}}' for j in range(52)]
    guesses = [code.encode() for code in build()] + [str(j).encode() for j in range(52)]
    tried = [*guesses, *(text.encode() for text in texts)]
    for text in list(tried):
        tried += [T("event") + lp(table, version, text) for version in versions]
        tried += [T("card") + lp(table, be32(1), slot, text) for slot in slots]
    assert not hashes & {sha256(one).digest() for one in tried}


def check_lengths(rows: list[tuple[str, str, bytes | None, bytes | None]]) -> None:
    """All hidden parts of a type have the same length, which does not depend on j or the card."""
    lengths = defaultdict(set)
    for kind, _, hidden, _ in rows:
        if hidden is not None:
            lengths[kind].add(len(hidden))
    assert {
        "CardsSwapped",
        "CardDrawn",
        "CardMoved",
        "CardPeeked",
        "RoundOpened",
        "SeatTaken",
        "TableOpened",
    } == set(lengths)
    assert all(len(one) == 1 for one in lengths.values()), lengths
