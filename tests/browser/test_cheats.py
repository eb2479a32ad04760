"""A page at a house that cheats stops, says so, and gives its player what shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import WebSocketRoute, expect

from dealer.proof.checkpoint import open_note
from dealer.service import Published, Resident
from tests.browser.people import Person


async def at_a_table(arrive, *names: str) -> list[Person]:
    host = Person(await arrive("/"), names[0])
    path = await host.open_table()
    people = [host, *[Person(await arrive(path), name) for name in names[1:]]]
    for one in people[1:]:
        await one.sit_down()
    return people


async def shuffled(arrive, *names: str) -> list[Person]:
    people = await at_a_table(arrive, *names)
    await people[0].do("Shuffle and start")
    for one in people:
        await one.sees(re.compile("Shuffled 52 cards"))
    return people


def json_in(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


async def accuses(person: Person, sentence: str) -> dict[str, Any]:
    """Wait until their page stops with the sentence; gives the evidence that it hands out."""
    box = person.page.get_by_role("alertdialog")
    await expect(box).to_contain_text(sentence)
    async with person.page.expect_download() as download:
        await box.get_by_role("button", name="Download the evidence").click()
    kept = json_in(Path(await (await download.value).path()))
    await box.get_by_role("button", name="Look at the table").click()
    await expect(box).to_be_hidden()
    await expect(person.line).to_contain_text(sentence)
    mark = person.page.locator("button.mark")
    await expect(mark).to_have_attribute("data-state", "no")
    tools = person.page.get_by_role("toolbar").get_by_role("button")
    for button in await tools.all():
        if await button.get_attribute("aria-label") not in ("Fewer cards", "More cards"):
            await expect(button).to_be_disabled()
    assert kept["sentence"] == sentence or sentence in kept["sentence"]
    return kept


async def suspects_nothing(person: Person) -> None:
    await expect(person.page.locator("button.mark")).not_to_have_attribute("data-state", "no")


@pytest.mark.parametrize("reload", [False, True])
async def test_a_false_card(crooked, arrive, axe, reload) -> None:
    """The card that comes is not the one that was sealed in its place."""
    ada, bob = await shuffled(arrive, "Ada", "Bob")
    table = ada.page.url[-32:]
    round_ = crooked.resident(table).table.round
    faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
    faces[top], faces[bottom] = faces[bottom], faces[top]
    await bob.button("Draw").click()
    kept = await accuses(bob, "A card that you were shown is not the one that was sealed")
    assert kept["table"] == table
    for note in kept["notes"]:
        open_note(note, key=bytes.fromhex(kept["key"]), table=table)
    await axe(bob.page)
    await suspects_nothing(ada)  # she was not shown that card
    if reload:  # and it stays so
        await bob.page.reload()
        box = bob.page.get_by_role("alertdialog")
        await expect(box).to_contain_text("was left because")
        async with bob.page.expect_download() as download:
            await box.get_by_role("button", name="Download the evidence").click()
        assert json_in(Path(await (await download.value).path())) == kept


async def test_a_false_root(crooked, arrive) -> None:
    """One player is told another event than the one in the log whose head the house signs."""

    def altered(_: Resident, news: Published) -> Published:
        entries = [
            entry._replace(leaf=entry.leaf.replace('"Cleo"', '"Clio"')) for entry in news.entries
        ]
        return news._replace(entries=entries)

    ada, bob = await at_a_table(arrive, "Ada", "Bob")
    crooked.tell_seat(2, altered)
    cleo = Person(await arrive(ada.page.url[ada.page.url.index("/tables") :]), "Cleo")
    await cleo.sit_down()
    await bob.sees("Clio sat down at seat 3.")
    await ada.do("Shuffle and start")
    await accuses(bob, "The house signed another log than the one that it showed here")
    await suspects_nothing(ada)


async def test_a_round_that_takes_other_bytes_than_were_asked_for(house, arrive) -> None:
    """On its way to the house the host's wish becomes another; only her page can know."""
    ada = Person(await arrive("/"), "Ada")

    def altered(page: WebSocketRoute) -> None:
        house = page.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["method"] == "round.open":
                frame["params"]["entropy"] = "house"
            house.send(json.dumps(frame))

        page.on_message(pass_on)

    await ada.page.route_web_socket(re.compile("/ws$"), altered)
    await ada.open_table()
    await ada.do("Shuffle and start")
    await ada.sees("Shuffled 52 cards (51 swaps), by the house alone.")
    mark = ada.page.locator("button.mark")
    await expect(mark).to_have_attribute("data-state", "no")
    await mark.click()
    await expect(ada.page.get_by_role("dialog")).to_contain_text(
        "Round 1 takes the house's bytes alone, though the players' bytes were asked for."
    )
