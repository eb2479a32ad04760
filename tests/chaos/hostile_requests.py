"""Attacks that keep to the protocol: the most expensive requests, from a patient client.

Each function is one visit: it begins with a connection and ends at `me.until`. Retry delays are
obeyed, so that the server has no reason to disconnect this client.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from dealer.proof.checkpoint import Cosigner
from tests.chaos.hostile_client import BIG_DECK, Attack, Attacker, Refused

LONG = 3_600_000
"""Milliseconds: the longest that a shuffle may wait."""

INVISIBLE = ("\u200b", "\u3164\u2800", "\u00ad\u034f", "\ufe0f\u115f", "\u202e", "\u2066")


async def big_rules(me: Attacker) -> None:
    """Open tables with the largest rules allowed, each on its own connection."""
    sizes: list[dict[str, Any]] = [
        {"rules": {"note": "x" * 15_000}},
        {"deck": [f"{number:010d}" for number in range(1024)]},
        {"rules": {"name": "x" * 15_000}},
        {"rules": {"note": "x" * 1_900}},
    ]
    while me.running():
        async with await me.socket() as socket:
            for params in sizes:
                with suppress(Refused):
                    await socket.open(**params)
                socket.table = None


async def big_names(me: Attacker) -> None:
    """Names of invisible characters, for tables and players; and the lobby that lists them."""
    async with await me.socket() as socket:
        for name in INVISIBLE:
            with suppress(Refused):
                await socket.open(name=name, rules={"name": name})
            with suppress(Refused):
                await socket.sit(name=name)
            await socket.call_with_retry("table.leave")
            with suppress(Refused):
                await socket.call_with_retry("table.list")


async def house_shuffles(me: Attacker) -> None:
    """Rounds of 1,020 cards with the server's entropy; a new connection for every shuffle."""
    while me.running():
        async with await me.socket() as socket:
            await socket.open()
            await socket.round(entropy="house")
            await socket.command("deck.shuffle")


async def reshuffles(me: Attacker) -> None:
    """Shuffle one table repeatedly in one round: every seal adds 1,020 slots to it."""
    async with await me.socket() as socket:
        if await socket.host_own_table():
            await socket.round(entropy="house")
        while me.running():
            await socket.command(
                "deck.shuffle", algorithm=me.chance.choice(("backward", "forward"))
            )


async def players_shuffles(me: Attacker) -> None:
    """Shuffles with a player's nonces; every second reveal is withheld, which voids the shuffle."""
    async with await me.socket() as socket:
        await socket.open()
        seat = (await socket.sit())["seat"]
        round_ = await socket.round(entropy="players", commit_ms=100, reveal_ms=100)
        for k in range(1000):
            if not me.running():
                break
            nonce = secrets.token_bytes(32)
            digest = socket.digest(round_, k, seat, nonce)
            await socket.call_with_retry("entropy.commit", round=round_, k=k, digest=digest)
            await socket.command("deck.shuffle")
            if k % 2:
                break
            await socket.call_with_retry("entropy.reveal", round=round_, k=k, nonce=nonce.hex())


async def waiting_shuffles(me: Attacker) -> None:
    """Tables whose shuffle waits an hour for a player that disconnected."""
    while me.running():
        async with await me.socket() as socket:
            await socket.open()
            await socket.sit()
            await socket.round(entropy="players", commit_ms=LONG, reveal_ms=LONG)
            await socket.command("deck.shuffle")


async def draws_at_random(me: Attacker) -> None:
    """Draw single cards at random from 1,020: each draw seals all of them again."""
    async with await me.socket() as socket:
        await socket.open(deck=BIG_DECK)
        await socket.sit()
        await socket.round(entropy="house")
        while me.running():
            await socket.command("deck.draw", **{"from": "random"})


async def many_events(me: Attacker) -> None:
    """Draw and return a thousand cards, with a list of every card in each request."""
    async with await me.socket() as socket:
        await socket.open()
        await socket.sit()
        await socket.round(entropy="house")
        await socket.command("deck.shuffle")
        while me.running():
            slots = (await socket.command("deck.draw", count=1000))["slots"]
            await socket.command("hand.show", cards=slots)
            await socket.command("hand.return", cards=slots)


async def entropy_spam(me: Attacker) -> None:
    """Digests and reveals for any round and shuffle, valid and invalid ones."""
    async with await me.socket() as socket:
        await socket.open()
        seat = (await socket.sit())["seat"]
        round_ = await socket.round(entropy="players", commit_ms=LONG, reveal_ms=LONG)
        while me.running():
            nonce = secrets.token_bytes(32)
            k = me.chance.choice((0, 0, 1, 2**32 - 1))
            with suppress(Refused):
                await socket.call(
                    "entropy.commit",
                    round=round_,
                    k=k,
                    digest=socket.digest(round_, k, seat, nonce),
                )
            with suppress(Refused):
                await socket.call("entropy.reveal", round=round_, k=k, nonce=nonce.hex())


async def cosignatures(me: Attacker) -> None:
    """Valid cosignatures of every checkpoint by fresh keys, and lines that are none."""
    cosigner = Cosigner(secrets.token_bytes(32))
    async with await me.socket() as socket:
        await socket.open()
        joined = await socket.sit(key=cosigner.public_key.hex())
        note = joined["checkpoint"]
        while me.running():
            lines = (
                cosigner.cosign(note, time=me.chance.randrange(2**40)),
                "\u2014 player/" + "0" * 64 + " " + "A" * 900,
                "x" * 1024,
            )
            for line in lines:
                with suppress(Refused):
                    await socket.call("table.cosign", cosignature=line)
            with suppress(Refused):
                await socket.command("round.open", entropy="house")
            with suppress(Refused):
                await socket.command("deck.shuffle")
            note = (await socket.call_with_retry("table.resume", token=joined["token"], after=0))[
                "checkpoint"
            ]
            with suppress(Refused):
                await socket.command("round.close")


async def unique_commands(me: Attacker) -> None:
    """A new command id for each of many small commands, some repeated with other content."""
    async with await me.socket() as socket:
        await socket.open()
        await socket.sit()
        await socket.command("round.open", entropy="house")
        await socket.command("deck.shuffle")
        for number in range(10_000):
            if not me.running():
                break
            cmd = f"{number:064d}"
            with suppress(Refused):
                drawn = await socket.call_with_retry("deck.draw", cmd=cmd)
                await socket.call_with_retry("hand.return", cmd=f"r{cmd[1:]}", cards=drawn["slots"])
            with suppress(Refused):
                await socket.call("deck.draw", cmd=cmd, count=2)


async def moves_of_many(me: Attacker) -> None:
    """Move a thousand cards within one pile, in requests that are refused for the last card."""
    async with await me.socket() as socket:
        await socket.open()
        await socket.round(entropy="house")
        await socket.command("deck.shuffle")
        await socket.command("pile.move", **{"from": "deck"}, to="pile:x", count=1000)
        slots = list(range(20, 1020))
        while me.running():
            with suppress(Refused):
                await socket.command("pile.move", pile="x", to="pile:x", cards=[*slots, 5000])


async def several_tables(me: Attacker) -> None:
    """Keep sixteen tables on one connection, so that none of them is evicted from memory."""
    async with await me.socket() as socket:
        for _ in range(16):
            await socket.open()
            await socket.round(entropy="house")
        await socket.drop_frames()


REQUESTS: dict[str, tuple[Attack, int]] = {
    one.__name__: (one, workers)
    for one, workers in (
        (big_rules, 3),
        (big_names, 1),
        (house_shuffles, 6),
        (reshuffles, 4),
        (players_shuffles, 3),
        (waiting_shuffles, 4),
        (draws_at_random, 2),
        (many_events, 2),
        (entropy_spam, 1),
        (cosignatures, 2),
        (unique_commands, 1),
        (moves_of_many, 1),
        (several_tables, 2),
    )
}
"""Each attack with the number of its concurrent workers."""
