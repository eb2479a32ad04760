"""One state of a random table at a random version, as four programs rebuild it from the log.

They are `dealer.open_log`, `table.state` with `at`, the projector's rows (read as they come, and
after a rebuild), and the replay of the JavaScript verifier. With them is compared a practice table
that is laid out from the state, in its own log by the same programs, and by both verifiers with the
bundle of its source. The tests compare some hundreds of (table, version) pairs; more are compared
by

    python -m tests.service.rebuilt_states 100000       # so many pairs
    python -m tests.service.rebuilt_states 500 7        # starting with the table of number 7
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import dealer
from dealer.analysis.open_bundle import PastTable
from dealer.analysis.open_log import AsyncLog
from dealer.errors import BadRequest, DealerError
from dealer.eventlog import EventRecord
from dealer.game.cards import UNKNOWN
from dealer.game.commands import CloseTable, Command, FinishShuffle, OpenRound, OpenTable
from dealer.game.state import Round
from dealer.game.view import SPECTATOR, Viewer
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.reading.past_states import no_pause
from dealer.service.service import ServiceOptions
from tests.harness.empty_log import empty_log
from tests.projector.databases import AnyConnection, catch_up, models, rebuilt
from tests.projector.random_games import CODES, HOST, Game, random_step
from tests.projector.test_every_prefix import in_memory
from tests.web import js_verifier
from tests.web.js_verifier import Bundle, ask

STEPS = 60
"""Random steps a table, of which the game refuses some."""

LAID_OUT = 3
"""From one of so many states a practice table is opened."""

BATCH = 32
"""Tables whose states one process of the JavaScript verifier replays."""

Cards = dict[str, list[tuple[int | None, str]]]
"""By stack, bottom first: the slot, None before the first seal, and the code, or `??`."""

STACKS = {"deck": "deck", "hands": "hand:{}", "piles": "pile:{}"}
"""Read model → the stack that its second column names."""


class LiveGame(Game):
    """A game whose commands a service decides and writes; it submits them without waiting."""

    def __init__(self, service: Service, chance: Random) -> None:
        self.service, self.chance = service, chance
        self.refused: list[Exception] = []
        super().__init__("live")

    def do(self, command: Command) -> list[Any]:
        if isinstance(command, OpenTable | FinishShuffle):  # the service does these on its own
            return []
        self.now += 7
        self.service.submit(self.live, command, self._answer)
        return []

    def tries(self, command: Command) -> None:
        self.do(command)

    def _answer(self, outcome: object) -> None:
        if isinstance(outcome, Exception):
            self.refused.append(outcome)

    def open_round(
        self, *, deck: Sequence[str] = CODES, entropy: str = "house", shuffled: bool = True
    ) -> Game:
        self.do(OpenRound(HOST, tuple(deck), entropy, 1_000, 1_000))
        if shuffled:
            self.shuffle()
        return self

    async def play(self) -> None:
        """A table with random steps, which is closed in the end."""
        self.live, _ = await self.service.open_table({"name": "random"})
        self.id, self.table = self.live.id, self.live.table
        self.sit("Ada", "Bob").open_round(shuffled=self.chance.random() < 0.8)
        for _ in range(STEPS):
            random_step(self, self.chance.randrange(19 * 25))
        if self.table.round is not None:
            self.record_results()
            self.close_round()
        await self.close_table()

    async def lay_out(self, rules: dict[str, Any], round_: Round) -> int:
        """A practice table, which is closed after its layout; the version of the layout's end."""
        self.live, _ = await self.service.open_table(rules, laid_out=round_)
        self.id, self.table = self.live.id, self.live.table
        end = self.table.version
        self.close_round()
        await self.close_table()
        return end

    async def close_table(self) -> None:
        self.do(CloseTable(HOST))  # so that its bundle is the whole log
        await self.live.wait_committed(self.table.version)
        assert self.table is self.live.table, "nothing else writes to this table"
        assert all(isinstance(error, DealerError) for error in self.refused)


def plain(state: PastTable) -> dict[str, Any]:
    """What the JavaScript replay knows of a state: seats, the open round, and its stacks."""
    stacks = {name: codes for name, codes in state.stacks.items() if codes}
    return {"seats": [*state.seats], "round": state.round, "stacks": stacks}


def without_salts(view: dict[str, Any]) -> dict[str, Any]:
    """A view of `table.state`, whose cards have their salt as a third member, as a snapshot."""
    if view.get("round") is None:
        return view
    cards = [card[:2] for card in view["round"]["cards"]]
    return view | {"round": view["round"] | {"cards": cards}}


def rows_of(connection: AnyConnection, round_: int) -> Cards:
    """The cards of a round as the read models have them."""
    found: dict[str, list[tuple[int, int | None, str]]] = {}
    for model, stack in STACKS.items():
        for row in models(connection)[model]:
            number, *which, place, slot, card = row[1:]
            if number == round_:
                found.setdefault(stack.format(*which), []).append((place, slot, card or UNKNOWN))
    return {name: [each[1:] for each in sorted(cards)] for name, cards in found.items()}


def cards_of(state: PastTable) -> Cards:
    """The same of a state, as its viewer saw it."""
    slots = state.members["round"]["stacks"]
    return {
        name: [
            (slot if slot >= 0 else None, code)
            for slot, code in zip(slots[name], codes, strict=True)
        ]
        for name, codes in state.stacks.items()
        if codes
    }


def slots_of(cards: Cards) -> dict[str, list[int | None]]:
    return {name: [slot for slot, _ in stack] for name, stack in cards.items()}


def known_in(cards: Cards) -> set[tuple[str, int, str]]:
    """Stack, place and code of each face that is not hidden."""
    return {
        (name, place, code)
        for name, stack in cards.items()
        for place, (_, code) in enumerate(stack)
        if code != UNKNOWN
    }


class Sample(NamedTuple):
    """A table that was played, and the versions at which its states are compared."""

    name: str
    game: LiveGame
    versions: list[int]


class Layout(NamedTuple):
    """A practice table, and its source; the layout ends at the one version of its sample."""

    source: Sample
    version: int
    sample: Sample


async def pairs(count: int, start: int = 0) -> tuple[int, int]:
    """Compare `count` pairs, from the table of number `start` on.

    The number of the next table, and of the practice tables that were compared.
    """
    done, number, practised = 0, start, 0
    with tempfile.TemporaryDirectory() as folder:
        url = empty_log(Path(folder) / "dealer.db")
        empty = Path(folder) / "empty.db"
        empty_log(empty)
        clock = [1_700_000_000_000]
        async with open_service(url, ServiceOptions(clock=lambda: clock[0])) as service:
            while done < count:
                samples: list[Sample] = []
                while done < count and len(samples) < BATCH:
                    game = LiveGame(service, Random(number))
                    await game.play()
                    head = game.table.version
                    chosen = game.chance.sample(range(1, head + 1), min(count - done, head // 2))
                    samples.append(Sample(f"table {number}", game, sorted(chosen)))
                    done += len(chosen)
                    number += 1
                async with dealer.open_log(url) as log:
                    replayed = ask([await question(log, sample) for sample in samples])
                    for sample, answer in zip(samples, replayed, strict=True):
                        await compare(service, log, sample, answer["states"], empty)
                    layouts = [layout for one in samples for layout in await laid_out(service, one)]
                    replayed = ask([await question(log, layout.sample) for layout in layouts])
                    for layout, answer in zip(layouts, replayed, strict=True):
                        await compare(service, log, layout.sample, answer["states"], empty)
                        await compare_with_source(log, layout)
                    await verify(log, layouts)
                    practised += len(layouts)
    return number, practised


async def question(log: AsyncLog, sample: Sample) -> dict[str, Any]:
    """What the JavaScript verifier is asked about a table."""
    lines = await log.bundle(sample.game.live.table_id)
    return {"do": "states", "lines": lines, "versions": sample.versions}


async def laid_out(service: Service, sample: Sample) -> list[Layout]:
    """Practice tables from versions in a round, except while cards wait to be passed."""
    past, live, found = service.past_states, sample.game.live, list[Layout]()
    refused: list[str] = []
    for version in sample.versions[::LAID_OUT]:
        number = sum(opened <= version for opened in live.table.round_versions)
        try:
            rules, round_ = await past.practice(live, number, version, pause=no_pause)
        except BadRequest as error:
            refused.append(str(error))
            continue
        game = LiveGame(service, sample.game.chance)
        end = await game.lay_out(rules, round_)
        name = f"practice of {sample.name}, version {version}"
        found.append(Layout(sample, version, Sample(name, game, [end])))
    assert all("not of round" in why or "wait to be passed" in why for why in refused)
    return found


async def compare_with_source(log: AsyncLog, layout: Layout) -> None:
    """Raise AssertionError unless the cards lie as in the source, and the same face up."""
    source, version, (name, game, (end,)) = layout
    there = await log.state(source.game.live.table_id, version, viewer="house")
    here = await log.state(game.live.table_id, end, viewer="house")
    assert plain(here)["stacks"] == plain(there)["stacks"], name
    assert face_up(here) == face_up(there), name


def face_up(state: PastTable) -> list[str]:
    """The codes of the cards that lie face up."""
    round_ = state.members["round"]
    codes = {slot: code for slot, code, *_ in round_["cards"]}
    return sorted(codes[slot] for slot in round_["shown"])


async def verify(log: AsyncLog, layouts: Sequence[Layout]) -> None:
    """Raise AssertionError unless both verifiers prove each layout from its source's bundle."""
    bundles = [
        Bundle(
            layout.sample.name,
            await log.bundle(layout.sample.game.live.table_id),
            source=await log.bundle(layout.source.game.live.table_id),
        )
        for layout in layouts
    ]
    disagreements, reports = js_verifier.compare(bundles)
    assert disagreements == []
    for bundle, report in zip(bundles, reports, strict=True):
        assert report.fault is None, f"{bundle.name}: {report.fault}"
        assert report.practice is not None
        assert report.practice.source == "proved", bundle.name


async def compare(
    service: Service,
    log: AsyncLog,
    sample: Sample,
    replayed: Sequence[dict[str, Any]],
    empty: Path,
) -> None:
    """Raise AssertionError at the first version whose states differ.

    `replayed` are those of the JavaScript verifier.
    """
    name, game, versions = sample
    table = game.live.table_id
    house = [await log.state(table, version, viewer="house") for version in versions]
    public = [await log.state(table, version) for version in versions]
    seats = [game.chance.choice([*state.seats, None]) for state in house]
    seen = [
        state if seat is None else await log.state(table, state.version, viewer=seat)
        for state, seat in zip(public, seats, strict=True)
    ]
    for state, theirs in zip(house, replayed, strict=True):
        assert plain(state) == theirs, f"{name}, version {state.version}: verify.js"
    for state, seat in zip(seen, seats, strict=True):
        viewer: Viewer | int = SPECTATOR if seat is None else seat
        view = await service.past_states.view(game.live, state.version, viewer, pause=no_pause)
        assert without_salts(view) == state.members, f"{name}, version {state.version}: table.state"
    game.rows = [row async for row in _rows(service, game.id)]
    with closing(in_memory(empty)) as connection:
        projector = Projector()
        for state, known in zip(public, house, strict=True):
            game.log(connection, upto=state.version)
            catch_up(connection, projector)
            if state.round is not None and "shuffle" not in state.members["round"]:
                rows, where = rows_of(connection, state.round), f"{name}, version {state.version}"
                assert slots_of(rows) == slots_of(cards_of(state)), f"{where}: rows"
                # Rows also have the face that is left when a stack of one known card is shuffled.
                assert known_in(cards_of(state)) <= known_in(rows), f"{where}: rows"
                assert known_in(rows) <= known_in(cards_of(known)), f"{where}: rows"
        before = models(connection)
        rebuilt(connection)
        assert models(connection) == before, f"{name}, version {versions[-1]}: rebuild"


async def _rows(service: Service, table: bytes) -> AsyncIterator[EventRecord]:
    async for rows in service.log.stream(table):
        for row in rows:
            yield row


if __name__ == "__main__":
    wanted, first, *_ = map(int, [*sys.argv[1:], *("100000", "0")[len(sys.argv) - 1 :]])
    following, practised = asyncio.run(pairs(wanted, first))
    print(
        f"{wanted:,} states of {following - first:,} tables agree, and the layouts of "
        f"{practised:,} practice tables; the next table is {following}."
    )
