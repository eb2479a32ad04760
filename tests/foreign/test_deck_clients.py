"""Published clients of deckofcardsapi.com, unmodified, with this server in its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.gateway.conftest import serving
from tests.harness.npm import BUILD, command
from tests.service.bare_service import bare_service

PROGRAM = Path(__file__).with_name("deck_clients.mjs").read_text("utf-8")
PACKAGES = ("deckofcards-api", "deckofcardsapi-client", "node-of-cards")

Found = dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(tmp_path_factory: Any) -> Found:
    """What each client found, by the name of its package."""
    folder = tmp_path_factory.mktemp("decks")
    async with serving(
        bare_service(f"sqlite:///{folder / 'dealer.db'}"), host_names=["deckofcardsapi.com"]
    ) as gateway:
        running = await asyncio.create_subprocess_exec(
            *command(PROGRAM, str(gateway.port), packages=PACKAGES),
            cwd=BUILD,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = await running.communicate()
    assert running.returncode == 0, errors.decode()
    result: Found = json.loads(printed)
    return result


def test_deckofcardsapi_client(found: Found) -> None:
    seen = found["deckofcardsapi-client"]
    assert len(set(seen["drawn"])) == 5
    assert seen["empty"] == []
    assert seen["listed"] == seen["drawn"]
    assert seen["bottom"] == seen["drawn"][:2]
    assert sorted(seen["rest"]) == sorted(seen["drawn"][2:])
    assert seen["failed"] == "Not enough cards remaining to draw 1 additional"
    assert "404" in seen["unknown"]
    assert seen["ordered"] == ["AS", "KH", "AS", "KH"]
    assert seen["again"] == [47, True]
    assert seen["remaining"] == 52


def test_deckofcards_api(found: Found) -> None:
    seen = found["deckofcards-api"]
    assert seen["opened"] == 108
    assert seen["added"] == {"mine": {"remaining": 3}}
    assert seen["top"] == [seen["drawn"][2]]
    assert seen["bottom"] == [seen["drawn"][0]]
    assert seen["random"] == [seen["drawn"][1]]
    assert seen["returned"] == seen["rest"] == 108
    assert seen["plain"] == ["AS", "2S"]
    assert seen["pictures"] is True


def test_node_of_cards(found: Found) -> None:
    seen = found["node-of-cards"]
    assert seen["remaining"] == seen["again"] == 104
    assert len(seen["drawn"]) == 3
    assert seen["named"] == [seen["drawn"][1]]
    assert seen["pristine"] == [52, False]
