"""Decks over simple REST: every path of the original on a deck, and what is wrong with requests."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from dealer.gateway import Gateway
from tests.gateway.decks import ORDER, Decks, codes, deck_server, decks, without_proof
from tests.gateway.http_client import get

__all__ = ["deck_server", "decks"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_new_deck_is_in_its_order(decks: Decks) -> None:
    opened = await decks.open()
    assert list(without_proof(opened)) == ["success", "deck_id", "remaining", "shuffled"]
    assert (opened["success"], opened["remaining"], opened["shuffled"]) == (True, 52, False)
    assert len(opened["deck_id"]) == 12
    assert opened["deck_id"].isalnum()
    drawn = await decks.ask("draw/", count=3)
    assert list(without_proof(drawn)) == ["success", "deck_id", "cards", "remaining"]
    assert codes(drawn) == ["AS", "2S", "3S"]
    assert await decks.codes("draw/bottom/") == ["KH"]
    assert await decks.codes("draw", count=48) == ORDER[3:-1]
    assert (await decks.ask())["shuffled"] is False


async def test_a_card_is_described_as_in_the_original(decks: Decks) -> None:
    await decks.open(cards="AD,0H,X1", jokers_enabled="true")
    answer = await decks.ask("draw/", count=3)
    base = f"{decks.http.base_url}/static/img/".replace("//static", "/static")
    names = {"AD": "aceDiamonds", "0H": "0H", "X1": "X1"}
    values = {"AD": ("ACE", "DIAMONDS"), "0H": ("10", "HEARTS"), "X1": ("JOKER", "BLACK")}
    assert answer["cards"] == [
        {
            "code": code,
            "image": f"{base}{name}.png",
            "images": {"svg": f"{base}{name}.svg", "png": f"{base}{name}.png"},
            "value": values[code][0],
            "suit": values[code][1],
        }
        for code, name in names.items()
    ]


async def test_a_shuffled_deck_has_every_card_once_and_is_shuffled(decks: Decks) -> None:
    opened = await decks.open("new/shuffle/", jokers_enabled="true")
    assert (opened["remaining"], opened["shuffled"]) == (54, True)
    drawn = await decks.codes("draw/", count=54)
    assert sorted(drawn) == sorted([*ORDER, "X1", "X2"])
    assert drawn != [*ORDER, "X1", "X2"]


async def test_several_and_partial_decks(decks: Decks) -> None:
    assert (await decks.open("new/shuffle/", deck_count=6))["remaining"] == 312
    drawn = await decks.codes("draw/", count=312)
    assert sorted(drawn) == sorted(ORDER * 6)
    assert (await decks.open(cards="as,KH,10S,AS", deck_count=2))["remaining"] == 8
    assert await decks.codes("draw/", count=8) == ["AS", "KH", "0S", "AS"] * 2
    assert (await decks.ask("shuffle/", deck_count=2))["remaining"] == 8
    assert sorted(await decks.codes("draw/", count=8)) == ["0S"] * 2 + ["AS"] * 4 + ["KH"] * 2
    assert (await decks.open(cards="X2"))["remaining"] == 1
    drawn = await decks.open("new/draw/", cards="10d, th,,0c", count=3)
    assert (sorted(codes(drawn)), drawn["remaining"]) == (["0C", "0D", "0H"], 0)


@pytest.mark.parametrize("ten", ["0S", "0s", "10S", "10s", "TS", "Ts", " 10S ", "10S,"])
async def test_a_ten_is_named_as_clients_write_it(decks: Decks, ten: str) -> None:
    """Wherever cards are named; the answers name it as the original does."""
    assert codes(await decks.open("new/draw/", cards=ten)) == ["0S"]
    assert (await decks.ask("pile/mine/add/", cards=ten))["piles"] == {"mine": {"remaining": 1}}
    assert await decks.codes("pile/mine/draw/", cards=ten) == ["0S"]
    assert (await decks.ask("return/", cards=ten))["remaining"] == 1
    await decks.ask("draw/")
    await decks.ask("pile/mine/add/", cards=ten)
    assert (await decks.ask("pile/mine/return/", cards=ten))["remaining"] == 1
    assert (await decks.ask("shuffle/", cards=ten))["remaining"] == 1
    assert await decks.codes("draw/") == ["0S"]


async def test_cards_of_a_new_deck_at_once(decks: Decks) -> None:
    drawn = await decks.open("new/draw/", count=2, deck_count=2)
    assert drawn["remaining"] == 102
    assert len(codes(drawn)) == 2
    assert (await decks.ask())["shuffled"] is True


async def test_too_many_cards_are_answered_as_in_the_original(decks: Decks) -> None:
    await decks.open(cards="AS,2S,3S")
    few = await decks.ask("draw/", count=5)
    assert codes(few) == ["AS", "2S", "3S"]
    assert without_proof(few) | {"cards": []} == {
        "success": False,
        "deck_id": decks.deck,
        "cards": [],
        "remaining": 0,
        "error": "Not enough cards remaining to draw 5 additional",
    }
    assert (await decks.ask("draw/random/"))["success"] is False


async def test_a_shuffle_collects_all_cards_or_takes_the_remaining_ones(decks: Decks) -> None:
    await decks.open()
    drawn = await decks.codes("draw/", count=10)
    await decks.ask("pile/mine/add/", cards=",".join(drawn[:2]))
    rest = await decks.ask("shuffle/", remaining="true")
    assert (rest["remaining"], rest["shuffled"]) == (42, True)
    assert (await decks.ask())["shuffled"] is True
    left = await decks.codes("draw/", count=42)
    assert sorted(left) == sorted(ORDER[10:])
    assert left != ORDER[10:]
    assert (await decks.ask("shuffle/"))["remaining"] == 52
    assert (await decks.ask("pile/mine/list/"))["piles"] == {}
    assert sorted(await decks.codes("draw/", count=52)) == sorted(ORDER)


async def test_a_shuffle_may_change_the_cards(decks: Decks) -> None:
    await decks.open(deck_count=2)
    assert (await decks.ask("shuffle/", jokers_enabled="true"))["remaining"] == 108
    assert (await decks.ask("shuffle/"))["remaining"] == 108
    assert (await decks.ask("shuffle/", cards="X1,KH"))["remaining"] == 4
    assert sorted(await decks.codes("draw/", count=4)) == ["KH", "KH", "X1", "X1"]


async def test_drawn_cards_return_below_the_deck(decks: Decks) -> None:
    await decks.open(cards="AS,2S,3S,4S,5S")
    await decks.ask("draw/", count=4)
    await decks.ask("pile/mine/add/", cards="2S")
    refused = await decks.ask("return/", 404, cards="4S,2S,5S")
    assert refused["error"].endswith("return to the deck; these are not: 2S,5S.")
    named = await decks.ask("return/", cards="4S")
    assert list(without_proof(named)) == ["success", "deck_id", "remaining"]
    assert named["remaining"] == 2
    assert (await decks.ask("return/"))["remaining"] == 4
    assert await decks.codes("draw/", count=4) == ["5S", "4S", "AS", "3S"]


@pytest.mark.parametrize("path", ["new/", "new/shuffle/"])
async def test_random_draws_take_each_card_once(decks: Decks, path: str) -> None:
    await decks.open(path)
    drawn = [code for _ in range(4) for code in await decks.codes("draw/random/", count=13)]
    assert sorted(drawn) == sorted(ORDER)
    assert drawn != ORDER


async def test_a_random_draw_does_not_make_a_deck_shuffled(decks: Decks) -> None:
    await decks.open()
    await decks.ask("draw/random/")
    assert (await decks.ask())["shuffled"] is False


async def test_drawing_at_the_same_time_gives_each_card_once(decks: Decks) -> None:
    await decks.open("new/shuffle/")
    answers = await asyncio.gather(*(decks.ask("draw/", count=4) for _ in range(13)))
    assert sorted(code for answer in answers for code in codes(answer)) == sorted(ORDER)


async def test_a_closed_deck_is_gone_with_its_proof_left(decks: Decks) -> None:
    opened = await decks.open()
    closed = await decks.ask("close/")
    assert closed["success"] is True
    gone = await decks.ask("draw/", 404)
    assert gone["error"] == "Deck ID does not exist. It was closed."
    assert gone["proof"] == closed["proof"] == opened["proof"]
    assert gone["proof_covers"].startswith("everything")


async def test_old_paths_and_missing_slashes(decks: Decks) -> None:
    for path in ("/api/new", "/api/new/", "/api/shuffle/", "/api/deck/new"):
        answer = (await decks.http.get(path)).json()
        assert answer["shuffled"] is (path == "/api/shuffle/")
    id = answer["deck_id"]
    drawn = (await decks.http.get(f"/api/draw/{id}/?count=2")).json()
    assert codes(drawn) == ["AS", "2S"]
    assert (await decks.http.get(f"/api/shuffle/{id}")).json()["remaining"] == 52
    assert codes((await decks.http.get(f"/api/deck/{id}/draw/Top/")).json())


@pytest.mark.parametrize("kind", ["form", "multipart", "json", "query"])
async def test_parameters_of_a_post(decks: Decks, kind: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "form": {"data": {"cards": "AS,KH"}},
        "multipart": {"files": {"cards": (None, b"AS,KH")}},
        "json": {"json": {"cards": ["AS", "KH"]}},
        "query": {"params": {"cards": "AS,KH"}},
    }
    sent = bodies[kind]
    answer = await decks.http.post("/api/deck/new/", **sent)
    assert answer.json()["remaining"] == 2
    assert (await decks.http.post("/api/deck/new/", json=None)).json()["remaining"] == 52


PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"[" * 8000),
        ("application/json", b"{"),
        ("application/x-www-form-urlencoded", b"\xff"),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 65)),
        ("application/json", json.dumps(dict.fromkeys(map(str, range(65)), 1)).encode()),
        ("multipart/form-data; boundary=b", b"".join([PART] * 65) + b"--b--\r\n"),
    ],
)
async def test_bodies_that_cannot_be_read(decks: Decks, kind: str, body: bytes) -> None:
    headers = {"Content-Type": kind}
    answer = await decks.http.post("/api/deck/new/", content=body, headers=headers)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.json()["error"] == "The parameters of this request cannot be read."


async def test_a_body_of_two_types_has_the_last(decks: Decks) -> None:
    headers = [("Content-Type", "text/plain"), ("Content-Type", "application/json")]
    answer = await decks.http.post("/api/deck/new/", content=b'{"cards":"AS"}', headers=headers)
    assert answer.json()["remaining"] == 1


DECK_COUNT = "deck_count is a whole number of decks, 1 to 20, like deck_count=2."
COUNT = "count is a whole number of cards, 0 to 1024, like count=2."

WRONG = [
    ("new/", {"deck_count": "many"}, 400, DECK_COUNT),
    ("new/", {"deck_count": ""}, 400, DECK_COUNT),
    ("new/", {"deck_count": "1.5"}, 400, DECK_COUNT),
    ("new/shuffle/", {"deck_count": 10**30}, 400, DECK_COUNT),
    ("new/", {"deck_count": 21}, 200, "The max number of Decks is 20."),
    ("new/draw/", {"deck_count": 99}, 200, "The max number of Decks is 20."),
    ("new/", {"deck_count": -1}, 200, "The min number of Decks is 1."),
    ("new/shuffle/", {"deck_count": 0}, 200, "The min number of Decks is 1."),
    ("new/", {"deck_count": 20}, 400, "A deck has at most 1024 cards; 20 x 52 are 1040."),
    (
        "new/",
        {"deck_count": 19, "jokers_enabled": "true"},
        400,
        "A deck has at most 1024 cards; 19 x 54 are 1026.",
    ),
    ("new/", {"jokers_enabled": 3}, 400, "jokers_enabled is true or false."),
    ("new/", {"cards": ","}, 400, "A deck has a card at least: name cards like AS,0D,KH,X1."),
    ("new/", {"cards": "AS,zz"}, 400, '"zz" is no card: name cards like AS,0D,KH,X1.'),
    ("new/draw/", {"cards": "1S"}, 400, '"1S" is no card'),
    ("new/", {"cards": ["AS", "KH"]}, 400, '"cards" is given twice, with different values.'),
    ("new/", {"cards": "X1", "jokers_enabled": "False"}, 400, "cards names jokers, but"),
    ("new/shuffle/", {"jokers_enabled": "yes"}, 400, "jokers_enabled is true or false."),
    ("new/", {"deck_type": "spanish"}, 400, "deck_type has no meaning here: every deck is of 52"),
    ("new/draw/", {"deck_type": ""}, 400, "deck_type has no meaning here"),
    ("new/", {"deckcount": 2}, 400, '"deckcount" is no parameter here: did you mean deck_count?'),
    ("new/", {"Deck_Count": 2}, 400, '"Deck_Count" is no parameter here: did you mean deck_count?'),
    (
        "new/",
        {"jokers": "true"},
        400,
        '"jokers" is no parameter here: did you mean jokers_enabled?',
    ),
    ("new/", {"cards[]": "AS"}, 400, '"cards[]" is no parameter here: did you mean cards?'),
    ("new/shuffle/", {"size": 2}, 400, '"size" is no parameter here: use deck_count, jokers_en'),
    ("new/", {"count": 2}, 400, '"count" is no parameter here: did you mean deck_count?'),
    ("new/draw/", {"deck_id": "abc"}, 400, '"deck_id" is no parameter here'),
    ("zzzzzzzzzzzz/", {"count": 2}, 400, '"count" is no parameter here: there are none.'),
    ("zzzzzzzzzzzz/draw/botom/", {}, 404, "There is no such path"),
    ("zzzzzzzzzzzz/pile/a/draw/botom/", {}, 404, "There is no such path"),
    ("new/draw/", {"count": "-+3"}, 400, COUNT),
    ("new/draw/", {"count": "1.5"}, 400, COUNT),
    ("new/draw/", {"count": 10**12}, 400, COUNT),
    ("new/draw/", {"count": -1}, 400, "count is the number of cards to draw, 0 or more"),
    ("zzzzzzzzzzzz/", {}, 404, "Deck ID does not exist."),
    ("zzzzzzzzzzzz/draw/", {}, 404, "Deck ID does not exist."),
    ("zzzzzzzzzzzz/pile/a/add/", {"cards": "AS"}, 404, "Deck ID does not exist."),
    ("zzzzzzzzzzzz/burn/", {}, 404, "There is no such path"),
]


@pytest.mark.parametrize(("path", "parameters", "status", "error"), WRONG)
async def test_requests_that_are_wrong(
    decks: Decks, path: str, parameters: dict[str, Any], status: int, error: str
) -> None:
    answer = await decks.get(path, status, **parameters)
    assert answer["success"] is False
    assert answer["error"].startswith(error)


CHANGES = [
    (
        "draw/",
        {"cards": "10S"},
        404,
        "A deck gives its next cards, and 0S by name only from a pile",
    ),
    ("draw/random/", {"cards": "zz"}, 400, '"zz" is no card'),
    ("draw/", {"cont": 3}, 400, '"cont" is no parameter here: did you mean count?'),
    ("shuffle/", {"deck_count": 2}, 400, "deck_count of this deck is 1; new/shuffle/ opens one"),
    ("shuffle/", {"remaining": "1"}, 400, "remaining is true or false."),
    ("shuffle/", {"remaining": "true", "cards": "AS"}, 400, "With remaining=true the cards stay"),
    ("shuffle/", {"jokers_enabled": "true"}, 400, "This deck was opened with certain cards"),
    ("shuffle/", {"cards": "AS,?"}, 400, '"?" is no card'),
    ("return/", {"cards": "3S,AS"}, 404, "Only drawn cards that are in no pile return to the deck"),
    ("close/", {"cards": "AS"}, 400, '"cards" is no parameter here: there are none.'),
]


@pytest.mark.parametrize(("path", "parameters", "status", "error"), CHANGES)
async def test_a_request_that_is_refused_changes_nothing(
    decks: Decks, path: str, parameters: dict[str, Any], status: int, error: str
) -> None:
    await decks.open(cards="AS,2S,10S,3S")
    await decks.ask("draw/")
    answer = await decks.ask(path, status, **parameters)
    assert answer["success"] is False
    assert answer["error"].startswith(error)
    assert (await decks.ask("return/"))["remaining"] == 4
    assert await decks.codes("draw/", count=4) == ["2S", "0S", "3S", "AS"]


async def test_what_browsers_and_sites_add_is_ignored(decks: Decks) -> None:
    added: dict[str, Any] = {"_": 1, "_t": "x", "ts": 2, "utm_source": "a", "fbclid": "b"}
    await decks.open(cards="AS", jokers_enabled="", **added)
    assert await decks.codes("draw/", deck_id=decks.deck, **added) == ["AS"]
    assert (await decks.http.get("/api/deck/new/?deck_count=2&deck_count=2")).json()["success"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain;charset=UTF-8", b"deck_count=2"),
        ("application/json", b'["AS"]'),
        ("application/xml", b"<cards/>"),
    ],
)
async def test_a_body_that_says_nothing_is_refused(decks: Decks, kind: str, body: bytes) -> None:
    headers = {"Content-Type": kind}
    answer = await decks.http.post("/api/deck/new/", content=body, headers=headers)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.json()["error"].startswith("The body is neither a form nor a JSON object")
    nothing = {"cards": None, "jokers_enabled": False}
    assert (await decks.http.post("/api/deck/new/", json=nothing)).json()["remaining"] == 52


async def test_other_methods_and_the_preflight_of_browsers(
    decks: Decks, deck_server: Gateway
) -> None:
    for method in ("PUT", "DELETE"):
        answer = await decks.http.request(method, "/api/deck/new/")
        assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
        assert answer.json()["error"] == "Use GET or POST."
        assert answer.headers["allow"] == "GET, POST, OPTIONS"
        answer = await decks.http.request(method, "/static/img/AS.svg")
        assert answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
        assert answer.json()["error"] == "Use GET or HEAD."
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    asked = {
        "Host": "9.9.9.9",
        "Origin": "https://else.example",
        "Access-Control-Request-Method": "POST",
    }
    preflight = await decks.http.options("/api/deck/new/", headers=asked)
    assert preflight.status_code == HTTPStatus.OK
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    head = await get(deck_server.port, "/api/deck/new/", method="HEAD", Connection="close")
    assert (head.status, head.body) == (405, b"")


async def test_pages_of_other_origins_may_use_decks_and_nothing_else(
    deck_server: Gateway, decks: Decks
) -> None:
    headers = {"Origin": "https://else.example", "Host": "9.9.9.9"}
    opened = await decks.http.get("/api/deck/new/", headers=headers)
    assert opened.headers["access-control-allow-origin"] == "*"
    posted = await decks.http.post("/rpc", json={}, headers=headers)
    assert posted.status_code == HTTPStatus.FORBIDDEN
    assert "access-control-allow-origin" not in posted.headers
    page = await decks.http.get("/", headers=headers)
    assert "access-control-allow-origin" not in page.headers


BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"


async def test_pages_of_public_sites_may_not_use_servers_in_private_networks(decks: Decks) -> None:
    """Where the page is `http` and the address no loopback one, browsers send `Origin` alone."""
    for headers in (
        {"Origin": "https://else.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://else.example"},
        {"Origin": "http://else.example", "Host": "192.168.1.5:8080"},
        {"Origin": "http://192.168.1.9", "Host": "192.168.1.5:8080"},
        {"Origin": "http://else.example", "Host": "[fd00::5]"},
        {"Origin": "null"},
        {"Referer": "http://else.example/", "Host": "192.168.1.5:8080"},
        {"Referer": "http://["},
        {"User-Agent": BROWSER, "Host": "192.168.1.5:8080"},  # an image, without a referrer
        {"User-Agent": BROWSER, "Host": "[fd00::5]", "Accept": "text/html"},  # a frame
        {"User-Agent": BROWSER, "Host": "169.254.7.7"},
        {"User-Agent": BROWSER},
    ):
        for ask in (decks.http.get, decks.http.post):
            refused = await ask("/api/deck/new/", headers=headers)
            assert refused.status_code == HTTPStatus.FORBIDDEN, headers
    page = {"Host": "192.168.1.5:8080", "Referer": "http://192.168.1.5:8080/tables/"}
    assert (await decks.http.get("/api/deck/new/", headers=page)).status_code == HTTPStatus.OK
    for headers in (
        {"Origin": "http://127.0.0.1:5173", "Sec-Fetch-Site": "same-site"},
        {"User-Agent": BROWSER, "Sec-Fetch-Site": "none"},  # typed
        {"User-Agent": "curl/8.5.0", "Host": "192.168.1.5:8080"},
    ):
        answer = await decks.http.get("/api/deck/new/", headers=headers)
        assert answer.status_code == HTTPStatus.OK, headers


async def test_a_connection_is_kept_for_the_next_request(deck_server: Gateway) -> None:
    """Its local port would be another one."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{deck_server.port}") as client:
        ports = set()
        for _ in range(3):
            answer = await client.get("/api/deck/new/")
            stream = answer.extensions["network_stream"]
            ports.add(stream.get_extra_info("client_addr"))
            assert answer.status_code == HTTPStatus.OK
    assert len(ports) == 1


async def test_the_address_of_links_is_that_of_the_request(decks: Decks) -> None:
    asked = {"Host": "localhost:1234"}
    answer = await decks.http.get("/api/deck/new/draw/", headers=asked)
    assert answer.json()["proof"].startswith("http://localhost:1234/tables/")
    assert answer.json()["cards"][0]["image"].startswith("http://localhost:1234/static/img/")
