"""The way in: one button opens a table, and what is chosen before that is what it has."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.conftest import PHONE
from tests.browser.seated import open_table, place, told


async def test_a_name_and_one_button_are_enough(arrive, axe) -> None:
    page = await arrive("/")
    await expect(page.get_by_text("No table is open yet.")).to_be_visible()
    await axe(page)
    link = await open_table(page, "Ada")
    assert "#invite=" in link
    assert "#" not in page.url
    assert await page.title() == "Ada’s table · dealer"
    await told(page, "You sat down at seat 1.")


async def test_a_table_has_what_was_chosen(arrive, axe) -> None:
    page = await arrive("/")
    await page.get_by_text("Choose deck, seats and rules").click()
    await page.get_by_label("Name of the table").fill("Thursday")
    await page.get_by_label("Seats").fill("3")
    await page.get_by_label("Decks in the shoe").fill("2")
    await page.get_by_role("combobox", name="Deck").select_option("32")
    await page.get_by_label("Rules").select_option("dealer")
    await page.get_by_label("Chance").select_option("house")
    await axe(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_role("button", name="Open a table").click()
    await page.get_by_role("button", name="Shuffle and start").click()
    await told(page, "Shuffled 64 cards (63 swaps), by the house alone.")
    assert await page.title() == "Thursday · dealer"

    other = await arrive(page.url[page.url.index("/tables") :])
    await expect(other.locator("select[name=seat] option")).to_have_text(
        ["The next free one", "Seat 2", "Seat 3"]
    )


async def test_open_tables_are_listed_and_lead_there(arrive) -> None:
    host = await arrive("/")
    await open_table(host, "Ada")
    guest = await arrive("/", size=PHONE)
    await guest.get_by_role("link", name="Ada’s table").click()
    await expect(guest.get_by_role("heading", name="You are looking on")).to_be_visible()


async def test_a_table_for_who_is_invited_lets_nobody_else_in(arrive) -> None:
    host = await arrive("/")
    await host.get_by_text("Choose deck, seats and rules").click()
    await host.get_by_label("Only who has the link may sit down").check()
    await host.get_by_label("Others may look on").uncheck()
    link = await open_table(host, "Ada")

    stranger = await arrive(link[link.index("/tables") : link.index("#")])
    await stranger.get_by_label("Your name").fill("Eve")
    await stranger.get_by_role("button", name="Sit down").click()
    await expect(stranger.locator("#sitting [role=status]")).not_to_be_empty()
    await expect(place(stranger, "deck")).to_have_count(0)

    await stranger.get_by_label("The link that invited you").fill(link)
    await stranger.get_by_role("button", name="Sit down").click()
    await told(host, "Eve sat down at seat 2.")
