"""Addresses of tables and servers."""

from __future__ import annotations

import pytest

from dealer.bots.links import page_address, read_link, socket_address
from dealer.errors import BadRequest

ID = "0123456789abcdef0123456789abcdef"
HERE = "ws://localhost:8080/ws"


@pytest.mark.parametrize(
    ("text", "link"),
    [
        (ID, (HERE, ID, None, None, None)),
        (f" {ID.upper()}\n", (HERE, ID, None, None, None)),
        (f"http://cards:81/tables/{ID}", ("ws://cards:81/ws", ID, None, None, None)),
        (f"https://c.org/x/tables/{ID}/#invite=a&by=A", ("wss://c.org/x/ws", ID, "a", None, None)),
        (f"http://c.org/tables/{ID}#ticket=dt_1", ("ws://c.org/ws", ID, None, "dt_1", None)),
        (f"http://c.org/tables/{ID}#seat=seat.1.2", ("ws://c.org/ws", ID, None, None, "seat.1.2")),
        (f"wss://c.org/ws/{ID}", ("wss://c.org/ws", ID, None, None, None)),
        (f"http://c.org/tables/{ID}).", ("ws://c.org/ws", ID, None, None, None)),
        (f"http://c.org//tables/{ID}/>", ("ws://c.org/ws", ID, None, None, None)),
        (f"http://c.org/tables/{ID}%20\u200b", ("ws://c.org/ws", ID, None, None, None)),
        (f"http://c.org/tables/{ID},#invite=a-_>", ("ws://c.org/ws", ID, "a-_", None, None)),
        (f"http://c.org/tables/{ID}#ticket=dt_1%20.", ("ws://c.org/ws", ID, None, "dt_1", None)),
    ],
)  # fmt: skip
def test_a_table_is_an_id_or_a_link(text, link):
    assert tuple(read_link(text, server=HERE)) == link


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0123",
        "http://c.org/tables/12",
        f"ftp://c.org/tables/{ID}",
        f"http://c.org/tables/{ID}x",
    ],
)
def test_other_texts_are_no_table(text):
    with pytest.raises(BadRequest, match="32 hexadecimal digits"):
        read_link(text, server=HERE)


@pytest.mark.parametrize(
    ("server", "socket", "pages"),
    [
        ("ws://localhost:8080/ws", "ws://localhost:8080/ws", "http://localhost:8080"),
        ("http://localhost:8080/", "ws://localhost:8080/ws", "http://localhost:8080"),
        ("https://c.org/x", "wss://c.org/x/ws", "https://c.org/x"),
    ],
)
def test_the_addresses_of_a_server(server, socket, pages):
    assert socket_address(server) == socket
    assert page_address(socket) == pages


def test_a_word_is_no_server():
    with pytest.raises(BadRequest, match="no address of a server"):
        socket_address("localhost")
