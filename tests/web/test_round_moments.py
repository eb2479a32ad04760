"""The moments of the audit page match what the server showed each viewer of a real game."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dealer.game.cards import build
from dealer.game.state import SeatHolder, Table, evolve
from dealer.game.view import SPECTATOR, Viewer, snapshot
from dealer.proof import codec
from dealer.proof.bundle import read_leaves
from dealer.proof.round_keys import secret_length
from dealer.proof.verify import Swap, verify
from tests.harness.programs import output_of
from tests.proof.log_builder import HOUSE_SEED, LogBuilder, openings_of, some_bytes
from tests.proof.test_verify import everything
from tests.web.forged_bundles import Base, dump
from tests.web.js_verifier import Bundle, Line, node
from tests.web.played_tables import Played, real_tables

pytestmark = pytest.mark.slow

_SCRIPT = Path(__file__).with_name("round_moments.mjs")


def moments_of(lines: Sequence[Line], folder: Path) -> list[dict[str, Any]]:
    """The rounds of a bundle with their moments, as the page's modules build them."""
    bundle = folder / "bundle.jsonl"
    bundle.write_text("\n".join(map(str, lines)) + "\n")
    rounds: list[dict[str, Any]] = json.loads(output_of(node(), str(_SCRIPT), str(bundle)))
    return rounds


class Replayed(NamedTuple):
    """A bundle and its rounds."""

    played: Played
    rounds: list[dict[str, Any]]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Replayed]:
    """Real tables, a log with every type of event, and a shoe with a rejected word."""
    folder = tmp_path_factory.mktemp("bundles")
    return [Replayed(played, moments_of(played.bundle.lines, folder)) for played in bundles()]


def bundles() -> list[Played]:
    logs = {"everything": everything(), "rejected": with_a_rejected_word()}
    return real_tables(largest=False) + [
        Played(Bundle(name, log.lines()), HOUSE_SEED) for name, log in logs.items()
    ]


def with_a_rejected_word() -> LogBuilder:
    """A log whose shuffle has a rejected word of the tape."""
    for number in count():
        secret = some_bytes("refusing", number, length=secret_length(416))
        log = LogBuilder(secrets=[secret]).open_table().open_round(build(decks=8), "house")
        log.shuffle(seats=[]).close_round()
        if any(len(swap.words) > 1 for swap in verify(log.lines()).swaps):
            return log
    raise AssertionError("unreachable")


def server_states(lines: Sequence[Line]) -> Iterator[Table]:
    """The table after each event of a bundle, with all faces, as the server has it."""
    swaps: dict[int, Swap] = {swap.version: swap for swap in verify(lines).swaps}
    table = Table()
    for leaf in read_leaves([str(line).encode() for line in lines]):
        public, hidden = leaf["public"], {}
        if leaf["type"] == "CardsSwapped":
            swap = swaps.get(leaf["version"])
            hidden = {} if swap is None else {"j": swap.j}
        elif "commit" in leaf and "slot" in public and table.round is not None:
            hidden = {"card": table.round.faces[public["slot"]]}
        evolve(table, codec.decode(leaf["type"], leaf["v"], public, hidden), leaf["at"])
        yield table


def server_view(table: Table, viewer: Viewer) -> dict[str, list[list[Any]]]:
    """The stacks with the faces that a viewer may know; those of a fresh deck are public."""
    round_ = snapshot(table, viewer)["round"]
    faces = dict(round_["cards"])
    return {
        name: [[card, round_["deck"][~card] if card < 0 else faces.get(card)] for card in cards]
        for name, cards in round_["stacks"].items()
        if cards
    }


def full_view(table: Table) -> dict[str, list[list[Any]]]:
    assert table.round is not None
    return {
        name: [[card, table.round.face(card)] for card in cards]
        for name, cards in table.round.stacks.items()
        if cards
    }


def test_each_viewer_sees_what_the_server_shows_them(real: list[Replayed]) -> None:
    views = 0
    for played, rounds in real:
        moments = {moment["version"]: moment for round_ in rounds for moment in round_["moments"]}
        for version, table in enumerate(server_states(played.bundle.lines), 1):
            moment = moments.get(version)
            if moment is None or table.round is None:
                continue
            for view in moment["views"]:
                stacks = {name: cards for name, cards in view["stacks"].items() if cards}
                match view["viewer"]:
                    case "above":
                        expected = full_view(table)
                    case "spectator":
                        expected = server_view(table, SPECTATOR)
                    case seat:
                        since = table.seats[seat].taken_at
                        expected = server_view(table, SeatHolder(seat, since))
                assert stacks == expected, (played.bundle.name, version, view["viewer"])
                views += 1
    assert views > 1000


def faces_in(stacks: dict[str, list[list[Any]]]) -> dict[str, list[str]]:
    return {name: [face for _, face in cards] for name, cards in stacks.items() if cards}


def test_the_last_swap_leaves_the_order_that_was_sealed(real: list[Replayed]) -> None:
    """The verifier compares the commitments of the slots with the same order."""
    for _, rounds in real:
        for round_ in rounds:
            above = [moment["views"][0]["stacks"] for moment in round_["moments"]]
            for n, moment in enumerate(round_["moments"]):
                if moment["type"] == "DeckSealed":
                    assert faces_in(above[n]) == faces_in(above[n - 1])
                    slots = [card for cards in above[n].values() for card, _ in cards]
                    assert len(slots) == len(set(slots))


def test_a_permalink_opens_its_moment(real: list[Replayed]) -> None:
    links = set()
    for played, rounds in real:
        for round_ in rounds:
            for moment in round_["moments"]:
                assert moment["target"] == moment["version"], moment["link"]
                links.add((played.bundle.name, moment["link"]))
            assert len({moment["link"] for moment in round_["moments"]}) == len(round_["moments"])
    assert any("&step=17" in link for _, link in links)


def test_each_swap_is_counted_for_two_cards(real: list[Replayed]) -> None:
    refused = 0
    for _, rounds in real:
        for round_ in rounds:
            for shuffle in round_["shuffles"]:
                alone = sum(swap["i"] == swap["j"] for swap in shuffle["swaps"])
                assert sum(shuffle["counts"]) == 2 * len(shuffle["swaps"]) - alone
                assert shuffle["sealed"] != shuffle["voided"]
                at = 0
                for swap in shuffle["swaps"]:
                    assert swap["at"] == at
                    at += len(swap["words"])
                refused += at - len(shuffle["swaps"])
    assert refused > 0


def test_an_open_round_has_no_moments(real: list[Replayed]) -> None:
    rounds = real[1].rounds
    assert [round_["state"] for round_ in rounds] == ["closed", "open"]
    assert rounds[1]["moments"] == []


def test_the_moments_end_at_the_first_fault(real: list[Replayed], tmp_path: Path) -> None:
    """With a wrong commitment of a swap, only the moments before it are built."""
    played = real[0].played
    swaps = [
        n for n, line in enumerate(played.bundle.lines) if '"type":"CardsSwapped"' in str(line)
    ]
    for at in (swaps[0], swaps[20]):
        rounds = moments_of(_signed_again(played, at), tmp_path)
        assert rounds[0]["state"] == "broken"
        assert rounds[0]["moments"][-1]["version"] == at - 1


def test_what_people_wrote_is_shown_as_far_as_it_is_opened(tmp_path: Path) -> None:
    lines = everything().lines()
    opened = openings_of(lines)
    shown = {"Ada", "Bea", "Robby"}, ['{"bet":5}', "away for ten minutes", "hello"]
    for kept, names, texts in ((opened, *shown), ([], {"\u2014"}, ["\u2014", "", "\u2014"])):
        bundle = [line for line in lines if line in kept or line not in opened]
        moments = [one for round_ in moments_of(bundle, tmp_path) for one in round_["moments"]]
        assert {name for one in moments for name in one["players"].values()} == names
        written = [one["public"] for one in moments if one["type"] in ("NoteAdded", "SeatVacated")]
        assert [one["text"] if "text" in one else one["reason"] for one in written] == texts


def _signed_again(played: Played, at: int) -> list[Line]:
    """The bundle with another commitment in line `at`, signed by the same house."""
    base = Base.of("real", played.bundle.lines, played.seed)
    leaf = json.loads(base.leaves[at - 1])
    leaf["commit"] = "00" * 32
    leaves = [*base.leaves[: at - 1], dump(leaf), *base.leaves[at:]]
    return base.signed(leaves).lines()
