"""A game file: deck, rules, piles, deals, buttons and help. The server does not enforce it.

README.md describes its members.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dealer.errors import BadRequest, ConfigurationError, amount
from dealer.game.cards import SUITS, build
from dealer.game.rules import ACTIONS, SEATS_MAX, Rules, check_names
from dealer.packs import members

SHORT_DECKS = {36: "A6789TJQK", 32: "A789TJQK", 24: "A9TJQK"}
"""Ranks of the standard decks with fewer than 52 cards."""

_WITHOUT_BUTTON = ("pile", "turn", "annotate", "open", "move_seat")
BUTTONS = tuple(name for name in ACTIONS if name not in _WITHOUT_BUTTON)
SEAT = "{seat}"
PICTURE_MAX = 5
"""Cards of a game's picture."""

TURNS = ("play", "discard", "draw")
"""The moves by which a player can pass the turn on."""

DIRECTIONS = ("left", "right", "across", "none")
"""To whom cards are passed in a round."""

_ORDER = ("turns", "tricks", "pass", "suit", "words")
_GAME = (
    *("game", "title", "players", "picture", "deck", "rules", "piles"),
    *("deal", "turn", "result", "buttons", "help"),
)
ONLY = frozenset((*_GAME, *_ORDER)) - {"title"}
"""Members by which a file is a game's: a pack's has none of them."""

_DECK = ("standard", "cards", "pack", "decks")
_PILE = ("name", "title", "spread")
_DEAL = ("title", "each", "piles", "when")
_DEALT = ("name", "count", "face")
_RESULT = ("of", "points", "best", "all", "to")
_OF_CARDS = ("hand", "poker", "omaha")
_OWN_RULES = ("deck", "seats", "name", "game", "pack", "join", "listed")


def read(
    given: Mapping[str, Any], *, name: str, packs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The game for the pages; ConfigurationError for a fault. `packs` are those of the server.

    `deck` of the result is as `table.open` takes it, `cards` the number of its cards.
    """
    members.only(given, _GAME + _ORDER, "")
    if members.name(given.get("game", name), "game") != name:
        raise ConfigurationError(f'game must be "{name}", like the name of the file.')
    players = _players(given.get("players"))
    deck, cards, pack = _deck(given.get("deck", {"standard": 52}), packs)
    picture = _picture(given.get("picture"), deck)
    piles = [_pile(pile, f"piles, {n}") for n, pile in enumerate(_list(given, "piles", 40), 1)]
    if len({pile["name"] for pile in piles}) != len(piles):
        raise ConfigurationError("piles: each name occurs once.")
    names = {pile["name"] for pile in piles}
    deals = _deals(given.get("deal", []), names, players)
    _check_number(deals, players, cards)
    turn = given.get("turn")
    if turn is not None:
        _check_pile(turn, "turn", names)
    result = _result(given["result"], names, _codes(deck)) if "result" in given else None
    optional = {"picture": picture, "pack": pack, "turn": turn, "result": result}
    sentences = enumerate(_list(given, "help", 20), 1)
    return {
        "game": name,
        "title": members.text(given.get("title"), "title"),
        "players": players,
        "deck": deck,
        "cards": cards,
        "rules": _rules(given.get("rules", {})),
        **_order(given, _codes(deck)),
        "piles": piles,
        "deal": deals,
        **{member: value for member, value in optional.items() if value is not None},
        "buttons": _among(BUTTONS, given.get("buttons", []), "buttons", most=len(BUTTONS)),
        "help": [members.text(sentence, f"help, {n}") for n, sentence in sentences],
    }


def _order(given: Mapping[str, Any], cards: set[str]) -> dict[str, Any]:
    """Turns, tricks, passing, which cards ask for a suit, and words; only what the game says."""
    order: dict[str, Any] = {}
    if "turns" in given:
        order["turns"] = _among(TURNS, given["turns"], "turns", most=len(TURNS))
    if "tricks" in given:
        tricks = members.mapping(given["tricks"], "tricks", ("trumps", "lead"))
        trumps = tricks.get("trumps", "")
        if trumps not in ("", *SUITS):
            raise ConfigurationError(f"tricks: trumps must be one of {', '.join(SUITS)}.")
        if "lead" in tricks and tricks["lead"] not in list(cards):
            raise ConfigurationError("tricks: lead must be a card of the deck.")
        order["tricks"] = {**tricks, "trumps": trumps}
    if "pass" in given:
        passed = members.mapping(given["pass"], "pass", ("count", "to"))
        count = members.whole(passed.get("count"), "pass: count", least=1, most=1024)
        to = _among(DIRECTIONS, passed.get("to"), "pass: to", least=1, most=20)
        order["pass"] = {"count": count, "to": to}
    if "suit" in given:
        _fitting(given["suit"], cards, "suit")
        order["suit"] = given["suit"]
    if "words" in given:
        words = members.mapping(given["words"], "words", (*BUTTONS, "your_turn", "before_deal"))
        order["words"] = {key: members.text(one, f"words: {key}") for key, one in words.items()}
    return order


def _among(known: tuple[str, ...], value: Any, at: str, *, least: int = 0, most: int) -> list[Any]:
    """A list of `least` to `most` of the `known` words."""
    given = members.items(value, at, least=least, most=most)
    for one in given:
        if one not in known:
            raise ConfigurationError(f"{at}: {json.dumps(one)} is none of {', '.join(known)}.")
    return given


def _list(given: Mapping[str, Any], name: str, most: int) -> list[Any]:
    return members.items(given.get(name, []), name, most=most)


def _players(value: Any) -> dict[str, int]:
    given = members.mapping(value, "players", ("min", "max", "best"))
    least = members.whole(given.get("min"), "players: min", least=1, most=SEATS_MAX)
    most = members.whole(given.get("max"), "players: max", least=least, most=SEATS_MAX)
    best = members.whole(given.get("best", most), "players: best", least=least, most=most)
    return {"min": least, "max": most, "best": best}


def _deck(value: Any, packs: Mapping[str, Mapping[str, Any]]) -> tuple[Any, int, str | None]:
    """What `table.open` takes as the deck, the number of its cards, and the name of its pack."""
    given = members.mapping(value, "deck", _DECK)
    if len({"standard", "cards", "pack"} & set(given)) != 1:
        raise ConfigurationError("deck must have one of standard, cards and pack.")
    decks = members.whole(given.get("decks", 1), "deck: decks", least=1, most=20)
    pack: str | None = None
    jokers, codes = 0, None
    if "pack" in given:
        pack = members.name(given["pack"], "deck: pack")
        if pack not in packs:
            raise ConfigurationError(
                f"deck: no pack {pack} is known; --packs names the folder of its file."
            )
        codes = list(packs[pack]["deck"])
    elif "cards" in given:
        codes = members.items(given["cards"], "deck: cards", least=1, most=1024)
    else:
        standard = given["standard"]
        if standard not in (52, 54, *SHORT_DECKS) or isinstance(standard, bool):
            raise ConfigurationError("deck: standard must be 52, 54, 36, 32 or 24.")
        jokers = 2 if standard == 54 else 0
        if standard in SHORT_DECKS:
            codes = [rank + suit for suit in SUITS for rank in SHORT_DECKS[standard]]
    try:
        cards = len(build(cards=codes, decks=decks, jokers=jokers))
    except BadRequest as error:
        raise ConfigurationError(f"deck: {error}") from None
    if decks == 1:
        return codes or ("54" if jokers else "52"), cards, pack
    own = {"jokers": jokers} if codes is None else {"cards": codes}
    return {"decks": decks, **own}, cards, pack


def _picture(value: Any, deck: Any) -> list[str] | None:
    """The cards of the game's picture in the lobby, which are cards of its deck."""
    if value is None:
        return None
    known = _codes(deck)
    picture = members.items(value, "picture", least=1, most=PICTURE_MAX)
    for code in picture:
        if not isinstance(code, str) or code not in known:
            raise ConfigurationError(f"picture: {json.dumps(code)} is not a card of the deck.")
    return picture


def _codes(deck: Any) -> set[str]:
    """The codes of a deck's cards; of copies of a card also the code without the number."""
    shoe: dict[str, Any] = deck if isinstance(deck, dict) else {"jokers": 2 * (deck == "54")}
    codes = deck if isinstance(deck, list) else shoe.get("cards")
    known = set(build(jokers=shoe["jokers"]) if codes is None else codes)
    return known | {code.partition(".")[0] for code in known}


def _rules(value: Any) -> dict[str, Any]:
    given = dict(members.mapping(value, "rules"))
    for name in _OWN_RULES:
        if name in given:
            raise ConfigurationError(f"rules: {name} is not for a game file.")
    try:
        check_names(given)
        Rules.check(given)
    except BadRequest as error:
        raise ConfigurationError(f"rules: {error}") from None
    return given


def _pile(value: Any, at: str) -> dict[str, Any]:
    given = members.mapping(value, at, _PILE)
    name = members.pile(given.get("name"), f"{at}: name")
    spread = given.get("spread", False)
    if not isinstance(spread, bool) and spread != "down":
        raise ConfigurationError(f'{at}: spread must be true, false or "down".')
    title = members.text(given.get("title"), f"{at}: title")
    return {"name": name, "title": title, "spread": spread}


def _deals(value: Any, piles: set[str], players: Mapping[str, int]) -> list[dict[str, Any]]:
    given = members.items(value if isinstance(value, list) else [value], "deal", most=20)
    return [_deal(entry, number, piles, players) for number, entry in enumerate(given, 1)]


def _deal(value: Any, number: int, piles: set[str], players: Mapping[str, int]) -> dict[str, Any]:
    at = f"deal, {number}"
    given = members.mapping(value, at, _DEAL)
    listed = members.items(given.get("piles", []), f"{at}: piles", most=64)
    deal: dict[str, Any] = {
        "each": _each(given.get("each", 0), f"{at}: each", players),
        "piles": [_dealt(entry, f"{at}: piles, {n}", piles) for n, entry in enumerate(listed, 1)],
    }
    if "title" in given:
        deal["title"] = members.text(given["title"], f"{at}: title")
    if (number == 1) == ("when" in given):
        raise ConfigurationError(f"{at}: every deal but the first has when.")
    if "when" in given:
        when = members.mapping(given["when"], f"{at}: when")
        for name in when:
            _check_pile(name, f"{at}: when", piles)
        deal["when"] = {
            name: members.whole(count, f"{at}: when, {name}", least=0, most=1024)
            for name, count in when.items()
        }
    if not deal["piles"] and not any(each for _, each in deal["each"]):
        raise ConfigurationError(f"{at}: it deals no card.")
    return deal


def _each(value: Any, at: str, players: Mapping[str, int]) -> list[list[int]]:
    """Pairs of the least number of players and the cards of each, in ascending order."""
    if not isinstance(value, dict):
        return [[players["min"], members.whole(value, at, least=0, most=1024)]]
    pairs = []
    for least, each in value.items():
        if not (least.isdecimal() and len(least) <= 4 and 1 <= int(least) <= SEATS_MAX):
            raise ConfigurationError(f"{at}: {json.dumps(least)} is not a number of players.")
        pairs.append([int(least), members.whole(each, f"{at}, {least}", least=0, most=1024)])
    pairs.sort()
    if not pairs or pairs[0][0] > players["min"]:
        raise ConfigurationError(f"{at}: it says nothing for {amount(players['min'], 'player')}.")
    return pairs


def _dealt(value: Any, at: str, piles: set[str]) -> dict[str, Any]:
    given = members.mapping(value, at, _DEALT)
    name = members.pile(given.get("name"), f"{at}: name")
    _check_pile(name, at, piles)
    face = given.get("face", "down")
    if face not in ("up", "down"):
        raise ConfigurationError(f"{at}: face must be up or down.")
    count = members.whole(given.get("count", 1), f"{at}: count", least=1, most=1024)
    return {"name": name, "count": count, "face": face}


def _check_pile(name: str, at: str, piles: set[str]) -> None:
    if name not in piles or SEAT in name:
        raise ConfigurationError(f"{at}: {json.dumps(name)} is none of the game's piles.")


def _result(value: Any, piles: set[str], cards: set[str]) -> dict[str, Any]:
    """What a round gave each player; `points` are pairs of a pattern and a number, in order.

    Each pattern gives points to some of `cards`, of which the first that fits counts.
    """
    given = members.mapping(value, "result", _RESULT)
    of = given.get("of")
    if of not in _OF_CARDS and (of not in piles or SEAT not in of):
        raise ConfigurationError(
            f"result: of must be {', '.join(_OF_CARDS)} or the name of a pile with {SEAT}."
        )
    result: dict[str, Any] = {"of": of}
    if "points" in given:
        patterns = members.mapping(given["points"], "result: points")
        if not 1 <= len(patterns) <= 100:
            raise ConfigurationError("result: points must have 1 to 100 members.")
        result["points"], left = [], cards
        for pattern, number in patterns.items():
            fitting = _fitting(pattern, cards, "result: points")
            if not fitting & left:
                why = "an earlier pattern fits all its cards"
                raise ConfigurationError(f"result: points, {json.dumps(pattern)}: {why}.")
            left = left - fitting
            value = members.whole(number, f"result: points, {pattern}", least=-1000, most=1000)
            result["points"].append([pattern, value])
    if "best" in given:
        if given["best"] not in ("least", "most"):
            raise ConfigurationError("result: best must be least or most.")
        result["best"] = given["best"]
    if "all" in given:
        if "points" not in given:
            raise ConfigurationError("result: all needs points.")
        result["all"] = members.whole(given["all"], "result: all", least=-1000, most=1000)
    if "to" in given:
        result["to"] = members.whole(given["to"], "result: to", least=1, most=1_000_000)
    return result


def _fitting(value: Any, cards: set[str], at: str) -> set[str]:
    """The cards whose codes fit a pattern, in which `*` stands for any characters."""
    pattern = members.string(value, at, most=16)
    fits = re.compile(".*".join(map(re.escape, pattern.split("*")))).fullmatch
    if not (fitting := {card for card in cards if fits(card)}):
        raise ConfigurationError(f"{at}, {json.dumps(pattern)}: no card has that code.")
    return fitting


def dealt_cards(deal: Mapping[str, Any], players: int) -> int:
    """The number of cards that a deal takes from the deck."""
    each: list[int] = [cards for least, cards in deal["each"] if least <= players][-1:]
    in_piles: int = sum(pile["count"] for pile in deal["piles"])
    return sum(each) * players + in_piles


def _check_number(deals: list[dict[str, Any]], players: Mapping[str, int], cards: int) -> None:
    for number in range(players["min"], players["max"] + 1):
        taken = sum(dealt_cards(deal, number) for deal in deals)
        if taken > cards:
            raise ConfigurationError(
                f"deal: for {amount(number, 'player')} it takes {amount(taken, 'card')}, but the "
                f"deck has {cards}."
            )
