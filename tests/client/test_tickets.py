"""A client that takes its seat with a ticket, on two devices."""

from __future__ import annotations

import pytest

import dealer
from dealer.errors import SessionEnded, TicketUsed
from tests.gateway.rpc_client import RpcClient
from tests.harness.service_keys import add_key, with_key


async def test_a_ticket_gives_the_users_seat_on_each_device(real_server, tmp_path) -> None:
    service = real_server.gateway.context.service
    shop = await RpcClient.connect(real_server.port, **with_key(await add_key(service)))
    table = (await shop.call("table.open", rules={"join": "invite"}))["table"]

    async def ticket() -> str:
        made = await shop.call("seat.ticket", table=table, name="Ada", seat=3, subject="user 7")
        return str(made["ticket"])

    used = await ticket()
    async with (
        dealer.connect(real_server.url, store=tmp_path / "phone") as phone,
        dealer.connect(real_server.url, store=tmp_path / "laptop") as laptop,
    ):
        ada = await phone.join(table, ticket=used)
        assert (ada.seat, ada.seats) == (3, {3: "Ada"})
        await shop.call("round.open", entropy="house")
        await shop.call("deck.shuffle")
        cards = await ada.draw(2)
        with pytest.raises(TicketUsed):
            await laptop.join(table, ticket=used)
        again = await laptop.join(table, ticket=await ticket())
        assert (again.seat, again.hand) == (3, cards)
        with pytest.raises(SessionEnded):
            await ada.until(lambda table: False)
        assert len(await again.draw()) == 1
    async with dealer.connect(real_server.url, store=tmp_path / "laptop") as laptop:
        again = await laptop.join(table)
        assert (again.seat, len(again.hand)) == (3, 3)
    await shop.close()
