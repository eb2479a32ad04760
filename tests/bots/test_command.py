"""`dealer bots` as a process, and `dealer practice`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

import dealer
from dealer.bots import read_link
from dealer.cli.main import main
from dealer.service.service import ServiceOptions
from tests.harness.own_gateway import own_gateway

ROOT = Path(__file__).parents[2]
ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.slow
@pytest.mark.parametrize("digits", [32, 24])
async def test_ctrl_c_ends_the_bots_and_they_leave(tmp_path, digits):
    async with own_gateway(tmp_path) as server, dealer.connect(server, name="Ada") as house:
        table = await house.open(seats=4)
        while not await house.tables():  # noqa: ASYNC110  the lobby sends no notice
            await asyncio.sleep(0.05)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dealer", "bots", "2", table.id[:digits], "--url", server,
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await table.until(lambda table: len(table.seats) == 2)
        process.send_signal(signal.SIGINT)
        output, _ = await process.communicate()
        assert process.returncode == 0
        assert output.decode().count("left.") == 2
        await table.until(lambda table: not table.seats)


async def test_the_first_digits_of_an_id_name_one_table_of_the_lobby(tmp_path, capsys):
    async with (
        own_gateway(tmp_path, ServiceOptions(per_network=17)) as server,
        dealer.connect(server, name="Ada") as house,
        dealer.connect(server, name="Bob") as other,
    ):
        # One more table than there are digits, so that two ids begin alike.
        first = Counter([(await one.open()).id[0] for one in [house] * 9 + [other] * 8])
        while len(await house.tables()) < 17:  # noqa: ASYNC110  the lobby sends no notice
            await asyncio.sleep(0.05)
        for digits, sentence in (
            (max(first, key=first.__getitem__), "several tables that start with"),
            ("0" * 31, "no table that starts with 000"),
        ):
            with pytest.raises(SystemExit) as ended:
                await asyncio.to_thread(main, ["bots", "1", digits, "--url", server])
            assert ended.value.code == 2
            assert sentence in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["0", ID], "Error"),
        (["1", "nonsense"], "32 hexadecimal digits"),
        (["1", f"http://c.org/tables/{ID}#ticket=dt_1"], "for one player"),
        (["1", ID, "--url", "localhost"], "no address of a server"),
    ],
)
def test_wrong_arguments_are_usage_errors(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as ended:
        main(["bots", *arguments])
    assert ended.value.code == 2
    assert sentence in " ".join(capsys.readouterr().err.replace("│", " ").split())


async def run_practice(capsys, *arguments):
    """The exit code and both outputs of `dealer practice`, in a thread beside the server."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main, ["practice", *arguments])
    out, err = capsys.readouterr()
    return ended.value.code, out, " ".join(err.replace("│", " ").split())


async def test_practice_opens_a_table_and_prints_its_addresses(tmp_path, capsys):
    async with (
        own_gateway(tmp_path) as server,
        dealer.connect(server, name="Ada") as hers,
        dealer.connect(server, name="Bob") as his,
    ):
        ada = await hers.join(await hers.open(seats=2, rules={"watch": "nobody"}))
        bob = await his.join(ada.id)
        code, _, said = await run_practice(capsys, ada.id, "--url", server)
        assert code == 1
        assert said.startswith("dealer: There is no table with that id from which you may play on")
        link = f"{server.replace('ws://', 'http://').removesuffix('/ws')}/tables/{ada.id}"
        own = f"{link}#seat={ada.token}"  # of a private table
        code, _, said = await run_practice(capsys, own)
        assert (code, said) == (1, "dealer: That table has no round 1: it has 0 so far.")
        for _ in range(2):
            await ada.round_open()
            await ada.shuffle()
            await ada.deal(3)
            await bob.until(lambda table: len(table.hand) == 3)
            version, hand = bob.version, list(bob.hand)
            await ada.round_close()
        at = ("--round", "2", "--at", str(version), "--seat", "2", "--name", "Cleo")
        code, out, _ = await run_practice(capsys, own, *at)
        assert code == 0
        first, second = out.splitlines()
        assert first.startswith("Practice table: http://")
        assert second.startswith("Your seat, for you alone: http://")
        shared, mine = (read_link(one.split()[-1], server=server) for one in (first, second))
        assert shared.invite
        assert shared.table == mine.table
        async with dealer.connect(server) as again:  # as the page does with the address
            cleo = await again.resume(mine.table, token=mine.token)
            await cleo.until(lambda table: table.hand == hand)
            assert (cleo.seats, cleo.seat) == ({2: "Cleo"}, 2)
            await cleo.round_close()  # the seat is the host's
        code, out, _ = await run_practice(capsys, own, "--json")
        assert json.loads(out).keys() == {"table", "url", "seat_url"}
        code, _, said = await run_practice(capsys, own, "--at", "0")
        assert code == 2
        assert "--at" in said
