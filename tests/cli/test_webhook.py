"""`dealer webhook`: what operators see and change; deliveries have tests of their own."""

from __future__ import annotations

import asyncio
import json

from dealer.eventlog import Log
from dealer.service.identity.admin import AdminService

from .conftest import Ask, Played

URL = "https://shop.example.org/dealer"


async def _add_key(url: str, name: str, *rights: str) -> None:
    async with await Log.open(url) as log:
        await AdminService(log, who="test").add_service_key(name, rights)


def add_keys(played: Played) -> None:
    asyncio.run(_add_key(played.url, "shop", "open", "read"))
    asyncio.run(_add_key(played.url, "opens", "open"))


def listed(ask: Ask, played: Played) -> list[dict[str, object]]:
    answer = ask("webhook", "list", "--json", "--database", played.url)
    assert answer.code == 0
    return [json.loads(line) for line in answer.lines]


def test_a_webhook_from_add_to_remove(ask: Ask, played: Played) -> None:
    add_keys(played)
    database = ("--database", played.url)
    assert "no webhooks" in ask("webhook", "list", *database).out
    answer = ask(
        "webhook", "add", URL, "--key", "shop", "--type", "CardDrawn", "--type", "RoundClosed",
        "--after", "start", "--why", "the shop asked", *database,
    )  # fmt: skip
    assert answer.code == 0, answer
    assert answer.out.startswith("whsec_")
    assert "Webhook 1." in answer.err
    assert "not shown again" in answer.err
    (webhook,) = listed(ask, played)
    assert webhook == {
        "id": 1, "url": URL, "key": "shop", "types": ["CardDrawn", "RoundClosed"], "signing": "v1",
        "allow_private": False, "position": "start", "created_at": webhook["created_at"],
        "failing_since": None, "problem": "", "disabled_at": None,
    }  # fmt: skip
    assert answer.out.strip().encode() not in played.file.read_bytes()
    for change in (("replay", "1", "--from", "now"), ("enable", "1"), ("remove", "1")):
        assert ask("webhook", *change, *database).code == 0
        assert ask("webhook", change[0], "9", *change[2:], *database).code == 1
    assert listed(ask, played) == []
    journal = ask("journal", *database).out
    for entry in ("add-webhook", "replay-webhook", "enable-webhook", "remove-webhook"):
        assert entry in journal
    assert "the shop asked" in journal


def test_a_public_key(ask: Ask, played: Played) -> None:
    add_keys(played)
    answer = ask(
        "webhook", "add", URL, "--key", "shop", "--sign", "ed25519", "--database", played.url
    )
    assert answer.out.startswith("whpk_")
    line = ask("webhook", "list", "--database", played.url).out
    assert f"1  {URL}  shop  all types  after 00000000-" in line
    assert line.strip().endswith("delivers")


def test_what_is_refused(ask: Ask, played: Played) -> None:
    add_keys(played)
    for given, words in (
        ((URL, "--key", "other"), "no valid key"),
        ((URL, "--key", "opens"), "right read"),
        ((URL, "--key", "shop", "--type", "Drawn"), "no event type"),
        ((URL, "--key", "shop", "--after", "57"), "not a position"),
        (("http://shop.example.org/", "--key", "shop"), "https"),
        (("shop.example.org", "--key", "shop"), "not a URL"),
    ):
        answer = ask("webhook", "add", *given, "--database", played.url)
        assert answer.code == 2
        assert words in " ".join(answer.err.replace("│", " ").split())
    assert listed(ask, played) == []
