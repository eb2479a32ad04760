"""Attacks that keep to the protocol and change little: expensive answers, false tokens, reconnects.

Each function is one visit, as in `hostile_requests`.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from tests.chaos.hostile_client import Attack, Attacker, Refused

_FOREIGN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("round.close", {}),
    ("deck.shuffle", {}),
    ("table.close", {}),
    ("pile.move", {"from": "hand:1", "to": "pile:x", "count": 1}),
    ("pile.move", {"from": "hand:2", "to": "hand:1", "cards": [0]}),
    ("hand.give", {"cards": [0], "to": 1}),
    ("pile.turn", {"pile": "hand:1"}),
    ("deck.return", {"from": "hand:1", "count": 1}),
)


async def join_and_leave(me: Attacker) -> None:
    """Take and leave seats, at the honest tables too, while presence is requested."""
    async with await me.socket() as socket:
        socket.table = me.chance.choice(me.honest)
        with suppress(Refused):
            await socket.call_with_retry("table.presence")
        while me.running():
            with suppress(Refused):
                await socket.sit(name="y" * 64)
            with suppress(Refused):
                await socket.command("table.leave")


async def presence(me: Attacker) -> None:
    """Request the presence of every honest table, from short connections."""
    while me.running():
        async with await me.socket() as socket:
            for socket.table in me.honest:
                with suppress(Refused):
                    await socket.call_with_retry("table.watch")
                    await socket.call_with_retry("table.presence")


async def watchers(me: Attacker) -> None:
    """Watch every honest table from its first event, repeatedly."""
    async with await me.socket() as socket:
        while me.running():
            for socket.table in me.honest:
                with suppress(Refused):
                    await socket.call_with_retry("table.watch", after=0)
        await socket.drop_frames()


async def slow_watchers(me: Attacker) -> None:
    """Watch every honest table from its first event, and read nothing."""
    async with await me.socket(small=True) as socket:
        for table in me.honest:
            await socket.send("table.watch", table=table, after=0)
        await me.rest(3600)


async def states(me: Attacker) -> None:
    """Request the state of tables of 1,020 cards, repeatedly."""
    async with await me.socket() as socket:
        await socket.open()
        await socket.round(entropy="house")
        await socket.command("deck.shuffle")
        while me.running():
            await socket.call_with_retry("table.state")


async def resume_flapping(me: Attacker) -> None:
    """Resume a seat from the first event on ever new connections."""
    async with await me.socket() as socket:
        await socket.open()
        token = (await socket.sit())["token"]
        await socket.round(entropy="house")
        await socket.command("deck.shuffle")
        table = socket.table
    while me.running():
        async with await me.socket() as socket:
            await socket.call_with_retry("table.resume", table=table, token=token, after=0)


async def proofs(me: Attacker) -> None:
    """Resume a long table from its first version: a proof over all of its leaves."""
    while me.running() and me.own:
        async with await me.socket() as socket:
            socket.table = me.own[0][0]
            with suppress(Refused):
                await socket.call_with_retry("table.watch", after=1)
            with suppress(Refused):
                await socket.call_with_retry("table.watch", after=0)


async def held_requests(me: Attacker) -> None:
    """Send large requests behind one whose long answer is not read."""
    async with await me.socket(small=True) as socket:
        await socket.open()
        await socket.round(entropy="house")
        for _ in range(60):
            await socket.send("table.state")
        for number in range(60):
            await socket.send("table.open", rules={"note": f"{number:015000d}"})
        await me.rest(3600)


async def hellos(me: Attacker) -> None:
    """Send sixty-four tokens in each hello, valid ones and invalid ones."""
    while me.running():
        async with await me.socket() as socket:
            known = [{"table": table, "token": token, "after": 0} for table, token in me.own[-32:]]
            wrong = [{"table": secrets.token_hex(16), "token": "host." + "0" * 64}] * 32
            with suppress(Refused):
                await socket.call_with_retry("session.hello", tokens=known + wrong)


async def lists(me: Attacker) -> None:
    """List the lobby as often as it is answered."""
    async with await me.socket() as socket:
        while me.running():
            await socket.call_with_retry("table.list")


async def discoveries(me: Attacker) -> None:
    """The largest answer to the smallest request."""
    async with await me.socket() as socket:
        while me.running():
            await socket.call_with_retry("rpc.discover")


async def guesses(me: Attacker) -> None:
    """Guess tokens and invitations of the honest tables."""
    async with await me.socket() as socket:
        while me.running():
            table = me.chance.choice(me.honest)
            token = me.chance.choice(("host.", "seat.1.2.", "seat.2.3.")) + secrets.token_hex(32)
            for method, params in (
                ("table.resume", {"after": 0, "token": token}),
                ("deck.draw", {"token": token}),
                ("table.join", {"name": "x", "seat": 1, "invite": token[-32:]}),
            ):
                with suppress(Refused):
                    await socket.call(method, table=table, **params)


async def other_hands(me: Attacker) -> None:
    """Every action on another seat's cards, from an own seat and without one."""
    async with await me.socket() as socket:
        while me.running():
            socket.table = me.chance.choice(me.honest)
            for method, params in _FOREIGN:
                with suppress(Refused):
                    await socket.call(method, **params)


async def reopening(me: Attacker) -> None:
    """Send as many pings as a new connection allows, then reconnect."""
    while me.running():
        async with await me.socket() as socket:
            for _ in range(20):
                await socket.send("ping")
            await socket.call("ping")


READS: dict[str, tuple[Attack, int]] = {
    one.__name__: (one, workers)
    for one, workers in (
        (join_and_leave, 1),
        (presence, 1),
        (watchers, 2),
        (slow_watchers, 2),
        (states, 1),
        (resume_flapping, 2),
        (proofs, 1),
        (held_requests, 1),
        (hellos, 1),
        (lists, 1),
        (discoveries, 1),
        (guesses, 1),
        (other_hands, 1),
        (reopening, 2),
    )
}
"""Each attack with the number of its concurrent workers."""
