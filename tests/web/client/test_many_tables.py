"""The JavaScript client at many tables, one after the other, against a real server."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

PLAY = """
    const ends = {
      async close(table) {
        await table.close();
        await table.until(({ closed }) => closed);
      },
      async leave(table) {
        await table.leave(); // the seat
        await table.roundClose();
        await table.leave(); // the table
        const left = await table.roundOpen().then(() => "", ({ message }) => message);
        if (left !== "You have left this table.") throw new Error(left);
      },
    };
    for (let number = 0; number < 20; number++) { // a connection may be at 16
      const opened = await its.house.open({ rules: { entropy: "house" } });
      const table = await its.house.join(opened);
      await table.roundOpen();
      await table.shuffle();
      await table.draw(2);
      await ends[args.ending](table);
    }
"""


@pytest.mark.parametrize("ending", ["close", "leave"])
async def test_many_tables_one_after_the_other(clients, real_server, ending):
    await clients.connect("house", real_server.url)
    await clients.run(PLAY, ending=ending)


async def test_closed_tables_are_not_resumed(clients, proxy):
    resumed = []

    def ask(frame):
        if frame["method"] in ("table.resume", "table.watch"):
            resumed.append(frame["params"]["table"])
        return frame

    proxy.alter_request = ask
    await clients.connect("house", proxy.url)
    closed = await clients.run("""
        its.closed = await its.house.join(await its.house.open());
        await its.closed.close();
        await its.closed.until(({ closed }) => closed);
        its.table = await its.house.join(await its.house.open());
        return its.closed.id;
    """)
    resumed.clear()
    proxy.cut()
    table = await clients.run("await its.table.roundOpen(); return its.table.id;")
    assert set(resumed) == {table}
    assert await clients.run("return its.closed.connection.state") == "connected"
    # A request about the closed one resumes it.
    assert closed in await clients.run("return (await its.closed.bundle()).url")
    assert set(resumed) == {table, closed}


async def test_a_host_whose_leaving_was_not_answered_stays_host(clients, proxy):
    """The repeated request is that of a host without a seat, which leaves the table."""
    lost = []

    def answer(frame):
        if frame.get("result", {}).get("host") is True and "checkpoint" not in frame["result"]:
            lost.append(frame)
            proxy.cut()
            return None
        return frame

    await clients.connect("house", proxy.url)
    await clients.run("its.table = await its.house.join(await its.house.open());")
    proxy.alter = answer
    await clients.run("await its.table.leave(); await its.table.roundOpen();")
    assert lost
    assert await clients.run("return its.table.seat") is None
