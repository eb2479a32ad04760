"""Metrics: their values and labels, which identify no table and no player."""

from __future__ import annotations

import re

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway import serve
from dealer.gateway.rpc.methods import METHODS
from dealer.service.startup import open_service
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.tables import seat_and_shuffle


async def test_metrics_have_these_values_and_no_other_labels(tmp_path, connect) -> None:
    async with (
        open_service(f"sqlite:///{tmp_path / 'counted.db'}") as service,
        serve(service, host="127.0.0.1", port=0, ops_port=0, limits=TEST_LIMITS) as gateway,
    ):
        table = await seat_and_shuffle(connect, gateway, players=2)
        await table.players[0].call("deck.draw")
        with pytest.raises(InvalidStatus):
            await connect(gateway, additional_headers={"Origin": "https://elsewhere.example"})
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
        assert re.search(r"^dealer_commits_on_loop [01]\.0$", page, re.MULTILINE)
        assert re.search(r"^dealer_projector_lag_events \d", page, re.MULTILINE)
        assert "dealer_loop_lag_seconds_count" in page
        labels = set(re.findall(r"[{,](\w+)=", page))
        assert labels == {"method", "outcome", "code", "reason", "le"} - (
            set() if "code=" in page else {"code"}
        )
        allowed = {*METHODS, "unreadable"}
        assert set(re.findall(r'method="([^"]*)"', page)) <= allowed
        for secret in (table.id, "player 1", *table.tokens, table.host_token):
            assert secret not in page
