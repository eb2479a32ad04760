"""The page stops when the server cheats, reports the fraud, and offers the evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.async_api import Page, WebSocketRoute, expect

from dealer.proof.checkpoint import open_note
from dealer.service import CommitNotice, LiveTable
from tests.browser.player_page import PlayerPage


async def at_a_table(open_page, *names: str) -> list[PlayerPage]:
    host = PlayerPage(await open_page("/"), names[0])
    path = await host.open_table()
    players = [host, *[PlayerPage(await open_page(path), name) for name in names[1:]]]
    for one in players[1:]:
        await one.sit_down()
    return players


async def shuffled(open_page, *names: str) -> list[PlayerPage]:
    players = await at_a_table(open_page, *names)
    await players[0].do("Shuffle and start")
    for one in players:
        await one.expect_log(re.compile("Shuffled 52 cards"))
    return players


def json_in(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


async def expect_accusation(person: PlayerPage, sentence: str) -> dict[str, Any]:
    """Wait until the page stops with this sentence; returns the downloaded evidence."""
    box = person.page.get_by_role("alertdialog")
    await expect(box).to_contain_text(sentence)
    async with person.page.expect_download() as download:
        await box.get_by_role("button", name="Download the evidence").click()
    evidence = json_in(Path(await (await download.value).path()))
    await box.get_by_role("button", name="Look at the table").click()
    await expect(box).to_be_hidden()
    await expect(person.banner).to_contain_text(sentence)
    mark = person.page.locator("button.badge")
    await expect(mark).to_have_attribute("data-state", "no")
    tools = person.page.get_by_role("toolbar").get_by_role("button")
    for button in await tools.all():
        if await button.get_attribute("aria-label") not in ("Fewer cards", "More cards"):
            await expect(button).to_be_disabled()
    assert evidence["sentence"] == sentence or sentence in evidence["sentence"]
    return evidence


async def expect_no_accusation(person: PlayerPage) -> None:
    await expect(person.page.locator("button.badge")).not_to_have_attribute("data-state", "no")


@pytest.mark.parametrize("reload", [False, True])
async def test_a_false_card_is_reported(malicious, open_page, axe, reload) -> None:
    """The server sends a card other than the sealed one."""
    ada, bob = await shuffled(open_page, "Ada", "Bob")
    table = ada.page.url[-32:]
    round_ = malicious.live_table(table).table.round
    faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
    faces[top], faces[bottom] = faces[bottom], faces[top]
    await bob.button("Draw").click()
    evidence = await expect_accusation(
        bob, "A card that you were shown is not the one that was sealed"
    )
    assert evidence["table"] == table
    for note in evidence["notes"]:
        open_note(note, key=bytes.fromhex(evidence["key"]), table=table)
    await axe(bob.page)
    await expect_no_accusation(ada)  # Ada did not receive that card
    if reload:  # the accusation is permanent
        await bob.page.reload()
        box = bob.page.get_by_role("alertdialog")
        await expect(box).to_contain_text("left the table because")
        async with bob.page.expect_download() as download:
            await box.get_by_role("button", name="Download the evidence").click()
        assert json_in(Path(await (await download.value).path())) == evidence


async def test_a_false_root_is_reported(malicious, open_page) -> None:
    """One player is sent a different event than the one in the signed log."""

    def altered(_: LiveTable, notice: CommitNotice) -> CommitNotice:
        entries = [
            replace(entry, leaf=entry.leaf.replace('"seat":3', '"seat":4'))
            for entry in notice.entries
        ]
        return replace(notice, entries=entries)

    ada, bob = await at_a_table(open_page, "Ada", "Bob")
    malicious.change_notices_of_seat(2, altered)
    await PlayerPage(await open_page(path_of(ada.page)), "Cleo").sit_down()
    await bob.expect_log("Cleo sat down at seat 4.")
    await ada.do("Shuffle and start")
    await expect_accusation(bob, "The server signed a different log than the one it showed here")
    await expect_no_accusation(ada)


async def test_a_false_name_is_reported(malicious, open_page) -> None:
    """One player is sent another name than the one that the signed log commits to."""

    def altered(_: LiveTable, notice: CommitNotice) -> CommitNotice:
        entries = [
            replace(entry, private=entry.private.replace('"Cleo"', '"Clio"'))
            for entry in notice.entries
        ]
        return replace(notice, entries=entries)

    ada, bob = await at_a_table(open_page, "Ada", "Bob")
    malicious.change_notices_of_seat(2, altered)
    await PlayerPage(await open_page(path_of(ada.page)), "Cleo").sit_down()
    await expect_accusation(bob, "The server sent another name or text")
    await expect(bob.page.get_by_text("Clio")).to_have_count(0)
    await ada.expect_log("Cleo sat down at seat 3.")
    await expect_no_accusation(ada)


def path_of(page: Page) -> str:
    return page.url[page.url.index("/tables") :]


async def test_a_changed_request_is_reported(server, open_page) -> None:
    """The request is changed on its way to the server; only the host's page can notice."""
    ada = PlayerPage(await open_page("/"), "Ada")

    def change_requests(page: WebSocketRoute) -> None:
        socket = page.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["method"] == "round.open":
                frame["params"]["entropy"] = "house"
            socket.send(json.dumps(frame))

        page.on_message(pass_on)

    await ada.page.route_web_socket(re.compile("/ws(/|$)"), change_requests)
    await ada.open_table()
    await ada.do("Shuffle and start")
    await ada.expect_log("Shuffled 52 cards, by the house only.")
    mark = ada.page.locator("button.badge")
    await expect(mark).to_have_attribute("data-state", "no")
    await mark.click()
    await expect(ada.page.get_by_role("dialog")).to_contain_text(
        "Round 1 uses the house's bytes alone, but the players' bytes were requested."
    )
