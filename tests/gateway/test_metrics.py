"""What the house counts, and that it counts nobody by themselves."""

from __future__ import annotations

import re

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway import serve
from dealer.gateway.commands import WISHES
from dealer.gateway.questions import QUESTIONS
from dealer.service.opening import open_service
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.tables import shuffled


async def test_what_is_counted_and_under_which_labels(tmp_path, arrive) -> None:
    async with (
        open_service(f"sqlite:///{tmp_path / 'counted.db'}") as service,
        serve(service, host="127.0.0.1", port=0, ops_port=0, limits=EAGER) as gateway,
    ):
        table = await shuffled(arrive, gateway, players=2)
        await table.players[0].ask("deck.draw")
        with pytest.raises(InvalidStatus):
            await arrive(gateway, additional_headers={"Origin": "https://elsewhere.example"})
        page = (await get(gateway.ops_port, "/metrics")).text
        for line in (
            'dealer_appends_total{outcome="written"} 6.0',
            'dealer_connections_refused_total{reason="origin"} 1.0',
            "dealer_batch_appends_sum 6.0",
            "dealer_ready 1.0",
            "dealer_draining 0.0",
            "dealer_database_trouble 0.0",
            "dealer_appends_waiting 0.0",
        ):
            assert line in page
        assert re.search(r"^dealer_projector_lag_events \d", page, re.MULTILINE)
        assert "dealer_loop_lag_seconds_count" in page
        labels = set(re.findall(r"[{,](\w+)=", page))
        assert labels == {"method", "outcome", "code", "reason", "le"} - (
            set() if "code=" in page else {"code"}
        )
        allowed = {*WISHES, *QUESTIONS, "unreadable"}
        assert set(re.findall(r'method="([^"]*)"', page)) <= allowed
        for secret in (table.id, "player 1", *table.tokens, table.host_token):
            assert secret not in page
