"""Sessions of the JavaScript client at one table, one after the other, against a real server."""

from __future__ import annotations

from tests.web.client.node_client import FAST


async def begin(clients, url, how):
    """Bob opens a table, which Ada joins or watches."""
    await clients.connect("bob", url)
    await clients.run(
        """
        // From when `its.held` is set, it holds the next two answers until both have come.
        class Together extends WebSocket {
            set onmessage(handler) {
                super.onmessage = handler && ((event) => {
                    if (!its.held || JSON.parse(event.data).id === undefined) {
                        handler(event);
                        return;
                    }
                    its.held.push(event);
                    if (its.held.length < 2) return;
                    const both = its.held;
                    its.held = null;
                    for (const one of both) handler(one);
                });
            }
        }
        its.ada = await client.connect(args.url, {
            name: "Ada", retry: args.retry, WebSocket: Together,
        });
        """,
        url=url,
        retry=FAST,
    )
    await clients.run(f"""
        its.bobs = await its.bob.open();
        its.hers = await its.ada.{how}(its.bobs.id);
    """)


async def test_joining_while_the_table_is_left(clients, real_server):
    await begin(clients, real_server.url, "watch")
    seats = await clients.run("""
        const leaving = its.hers.leave();
        const again = its.ada.join(its.bobs);
        await leaving;
        const hers = await again;
        const bobs = await its.bob.join(its.bobs);
        await bobs.until(({ seats }) => seats.size === 2);
        await hers.until(({ seats }) => seats.size === 2);
        return [hers.seat, bobs.seat];
    """)
    assert seats == [1, 2]


async def test_answers_to_a_leave_and_a_join_come_together(clients, real_server):
    """As node reads frames that were received together: without a microtask between."""
    await begin(clients, real_server.url, "watch")
    seats = await clients.run("""
        its.held = [];
        const leaving = its.hers.leave();
        const hers = await its.ada.join(its.bobs);
        await leaving;
        const bobs = await its.bob.join(its.bobs);
        await hers.until(({ seats }) => seats.size === 2);
        return [hers.seat, bobs.seat];
    """)
    assert seats == [1, 2]


async def test_an_ended_session_does_not_end_the_one_after_it(clients, real_server):
    """A second leave of the first session is answered while the next one begins."""
    await begin(clients, real_server.url, "join")
    seats = await clients.run("""
        await its.hers.leave();
        const again = its.ada.join(its.bobs);
        const second = its.hers.leave().catch(() => undefined);
        const hers = await again;
        await second;
        const bobs = await its.bob.join(its.bobs);
        await hers.until(({ seats }) => seats.size === 2);
        await hers.note("chat", "here");
        return [hers.seat, bobs.seat];
    """)
    assert seats == [1, 2]
