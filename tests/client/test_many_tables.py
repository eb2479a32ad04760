"""One connection at many tables, one after the other, against a real server."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.errors import DealerError

pytestmark = pytest.mark.slow

TABLES = 20
"""More than the 16 that a connection may be at."""


def record(proxy, *methods):
    """The ids of the tables that these methods are called with from now on."""
    found = []

    def ask(frame):
        if frame["method"] in methods:
            found.append(frame["params"]["table"])
        return frame

    proxy.alter_request = ask
    return found


@pytest.mark.parametrize("ending", ["close", "leave"])
async def test_many_tables_one_after_the_other(connect, ending):
    async with connect(name="Ada") as house:
        for _ in range(TABLES):
            table = await house.join(await house.open(rules={"entropy": "house"}))
            await table.round_open()
            await table.shuffle()
            assert len(await table.draw(2)) == 2
            if ending == "close":
                await table.close()
                await table.until(lambda table: table.closed)
            else:
                await table.leave()  # the seat
                await table.round_close()
                await table.leave()  # the table
                with pytest.raises(DealerError, match="left"):
                    await table.round_open()
        assert house._connection.sockets == 1


async def test_closed_tables_are_not_resumed(connect, proxy):
    resumed = record(proxy, "table.resume", "table.watch")
    async with connect(proxy.url, name="Ada") as house:
        closed = await house.join(await house.open())
        await closed.close()
        await closed.until(lambda table: table.closed)
        table = await house.join(await house.open())
        resumed.clear()
        proxy.cut()
        await table.round_open()
        assert set(resumed) == {table.id}
        # A request about the closed one resumes it.
        assert closed.id in (await closed.bundle())["url"]
        assert set(resumed) == {table.id, closed.id}


async def test_a_table_whose_closing_was_not_answered_is_closed_once(connect, proxy):
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        version, lost = table.version, list[Any]()

        def answer(frame):
            if "result" in frame and frame["result"].get("version") == version + 1 and not lost:
                lost.append(frame)
                proxy.cut()
                return None
            return frame

        proxy.alter = answer
        await table.close()
        assert lost
        assert table.version == version + 1
        assert house._connection.sockets == 2


async def test_a_host_whose_leaving_was_not_answered_stays_host(connect, proxy):
    """The repeated request is that of a host without a seat, which leaves the table."""
    async with connect(proxy.url, name="Ada") as house:
        table = await house.join(await house.open())
        lost = []

        def answer(frame):
            if frame.get("result", {}).get("host") is True and "checkpoint" not in frame["result"]:
                lost.append(frame)
                proxy.cut()
                return None
            return frame

        proxy.alter = answer
        await table.leave()
        assert lost
        assert table.seat is None
        await table.round_open()
        await table.leave()
        with pytest.raises(DealerError, match="left"):
            await table.round_close()
        assert await (await house.watch(table.id)).round_close() is None  # with the host token
