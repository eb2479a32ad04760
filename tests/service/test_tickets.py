"""The text of a ticket: it says what it was made with, and no other text does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import BadToken, HouseKeyError, TicketExpired
from dealer.eventlog.keys import HouseKeys
from dealer.service import LiveTable
from dealer.service.identity.service_keys import ServiceKey, ServiceKeys
from dealer.service.identity.tokens import TICKET_MAX, Tickets, ticket_digest, user_digest

NOW = 1_800_000_000_000
KEYS, OTHERS = HouseKeys(bytes(32)), HouseKeys(bytes(31) + b"\x01")
TABLE = LiveTable(bytes(range(16)), bytes(range(16)).hex())

SHOP = ServiceKey(7, "shop", frozenset({"seat"}))

statements = st.fixed_dictionaries(
    {
        "name": st.text(st.characters(codec="utf-8"), min_size=1, max_size=64),
        "seat": st.none() | st.integers(1, 100),
        "subject": st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=255),
        "bot": st.booleans(),
        "seconds": st.integers(1, 30 * 86_400),
    }
)


def service_keys() -> ServiceKeys:
    valid = ServiceKeys()
    valid._keys = {bytes(32): SHOP}
    return valid


@given(statements)
def test_a_ticket_says_what_it_was_made_with_until_it_expires(given) -> None:
    now = NOW
    tickets = Tickets(KEYS, service_keys(), lambda: now)
    text, expires_at = tickets.make(TABLE, SHOP, **given)
    assert len(text) <= TICKET_MAX
    assert expires_at == NOW + 1000 * given["seconds"]
    ticket = tickets.open(TABLE, text)
    assert (ticket.table, ticket.expires_at) == (TABLE.id, expires_at)
    assert (ticket.name, ticket.seat, ticket.bot) == (given["name"], given["seat"], given["bot"])
    subject = given["subject"]
    if subject is None:
        assert ticket.user == b""
    else:
        assert ticket.user == user_digest(KEYS, TABLE.id, issuer="service:7", subject=subject)
        assert subject not in text or len(subject) < 4
    now = expires_at
    with pytest.raises(TicketExpired):
        tickets.open(TABLE, text)


@given(statements, st.data())
def test_no_other_text_is_a_ticket(given, data) -> None:
    tickets = Tickets(KEYS, service_keys(), lambda: NOW)
    text, _ = tickets.make(TABLE, SHOP, **given)
    place = data.draw(st.integers(0, len(text) - 2))  # the last character has bits without meaning
    other = data.draw(st.characters().filter(lambda one: one != text[place]))
    for changed in (
        text[:place] + other + text[place + 1 :],
        text[:place] + text[place + 1 :],
        text + other,
        "dt_" + other * 50,
    ):
        with pytest.raises(BadToken):
            tickets.open(TABLE, changed)
    with pytest.raises(BadToken):
        Tickets(OTHERS, service_keys(), lambda: NOW).open(TABLE, text)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_ticket_of_an_earlier_house_key_is_valid_after_a_rotation(restarted: bool) -> None:
    """It is sealed under the key of its table, which keeps it."""
    before, after = HouseKeys(b"\1" * 32), HouseKeys(b"\2" * 32)
    table = LiveTable(TABLE.id, TABLE.table_id)
    table.table.key = before.public_key
    given: Any = {"name": "Ada", "seat": 2, "subject": "u1", "bot": False, "seconds": 60}
    text, _ = Tickets(before, service_keys(), lambda: NOW).make(table, SHOP, **given)
    digest = ticket_digest(before, text)
    if restarted:
        keys = HouseKeys(b"\2" * 32, earlier=[HouseKeys(b"\1" * 32)])
    else:
        keys = before
        keys.adopt(after)
    assert keys.public_key == after.public_key
    opened = Tickets(keys, service_keys(), lambda: NOW).open(table, text)
    assert (opened.name, opened.seat) == ("Ada", 2)
    assert ticket_digest(keys.of(table.table.key), text) == digest  # so it is used once
    with pytest.raises(HouseKeyError, match="earlier house key whose file is missing"):
        Tickets(HouseKeys(b"\2" * 32), service_keys(), lambda: NOW).open(table, text)


def test_a_ticket_ends_with_the_key_of_its_service() -> None:
    valid = service_keys()
    tickets = Tickets(KEYS, valid, lambda: NOW)
    text, _ = tickets.make(TABLE, SHOP, name="Ada", seat=None, subject=None, bot=False, seconds=60)
    assert tickets.open(TABLE, text).key == SHOP.id
    valid._keys = {}
    with pytest.raises(BadToken, match="was revoked; ask for a new one"):
        tickets.open(TABLE, text)


def test_users_have_different_digests_by_table_issuer_and_subject() -> None:
    """Also where the texts joined are the same."""
    cases = [("", "ab"), ("a", "b"), ("ab", ""), ("b", "a")]
    digests = {
        user_digest(keys, table, issuer=issuer, subject=subject)
        for keys in (KEYS, OTHERS)
        for table in (bytes(16), bytes(range(16)))
        for issuer, subject in cases
    }
    assert len(digests) == 16
