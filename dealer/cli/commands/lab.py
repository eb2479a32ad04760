"""`dealer lab`: statistical tests of fair and biased shuffles."""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from dealer.cli.commands import verify
from dealer.cli.options import Commands, flag, given, takes, usage_errors
from dealer.cli.output import echo, echo_err, progress, say_json
from dealer.errors import ConfigurationError, UnknownTable, amount

if TYPE_CHECKING:
    from dealer.lab.experiment import Kind, Samples
    from dealer.lab.report import Report
    from dealer.lab.shuffles import Method

CHECKED, CHECKED_DECK = 20_000, 52
SHOE, SHOE_SHUFFLES = 416, 3_000

takes_source = partial(
    given,
    "--source",
    "NAME",
    "Source of the random numbers: system (random bytes of this machine), tape (as at a table, one "
    "for each shuffle), pcg64 or mersenne (seeded generators).",
)
takes_seed = given(
    "--seed", "N", "Seed for reproducible numbers; not with system.", type=click.IntRange(0)
)
lab = Commands(
    help="Test shuffles statistically: fair methods, biased ones, and those of played tables."
)


@lab.command(
    help="""Shuffle a new deck many times and test whether the results are those of a fair shuffle.

    It counts the orders (up to 7 cards) and the cards at each place, both of the shuffles and of
    the permutations from each shuffle to the next. p is the probability of at least this deviation
    for a fair shuffle, with Holm's correction for the number of tests. The exit code is 1 if the
    shuffle is not fair.

    ```
    dealer lab run --deck 4 --shuffles 600000
    dealer lab run --shuffle swap-any
    dealer lab run --shuffle partial --steps 13 --source tape
    ```
    """
)
@given("--deck", "N", "Number of cards.", type=click.IntRange(0, 1024), default=CHECKED_DECK)
@given("--shuffles", "N", "Number of shuffles.", type=click.IntRange(1), default=100_000)
@given(
    "--shuffle",
    "NAME",
    "Fair: backward, forward, partial, random-key, visited-set. Wrong: swap-any, "
    "swap-any-but-last, random-comparator, transpositions, sattolo.",
    default="backward",
)
@takes_source(default="system")
@takes_seed
@given(
    "--steps",
    "N",
    "Number of steps of a partial shuffle, or of transpositions.",
    type=click.IntRange(0),
)
@takes("as_json")
def run(
    deck: int,
    shuffles: int,
    shuffle: str,
    source: str,
    seed: int | None,
    steps: int | None,
    as_json: bool,
) -> None:
    _require_packages()
    from dealer.lab import report
    from dealer.lab.shuffles import method

    with usage_errors():
        chosen = method(shuffle, n=deck, steps=steps)
    started = time.perf_counter()
    result = _experiment(chosen, source, seed, shuffles)
    seconds = time.perf_counter() - started
    shown = report.histogram(result.tally)
    heading = f"{shuffle}: {chosen.sentence}"
    if as_json:
        about = {"shuffle": shuffle, "source": source, "seed": seed}
        say_json(about | result.members())
    else:
        echo(
            f"{heading}. {amount(shuffles, 'shuffle')} of {amount(deck, 'card')} in {seconds:.1f} "
            f"s, numbers from {source}."
        )
        if chosen.sample < deck:
            echo(f"Only the top {amount(chosen.sample, 'place is', 'places are')} tested.")
        for line in (*result.frequencies(), "", *report.lines(shown), *result.lines()):
            echo(line)
    _exit_unless(not result.wrong)


@lab.command(
    help="""Test every method: the fair ones must pass, and each biased one must be detected.

    Decks have 52 cards, except for a thousand transpositions: their bias is too small to measure
    there, so they are tested with eight decks, 416 cards. The exit code is 1 if a verdict is wrong:
    then do not trust the other verdicts either.

    ```
    dealer lab check
    dealer lab check --source tape
    ```
    """
)
@takes_source(default="system")
@takes_seed
@given(
    "--shuffles",
    "N",
    "Number of shuffles for each method.",
    type=click.IntRange(1000),
    default=CHECKED,
)
@takes("as_json")
def check(source: str, seed: int | None, shuffles: int, as_json: bool) -> None:
    _require_packages()
    from dealer.lab.shuffles import METHODS, method

    right = True
    for name in METHODS:
        large = name == "transpositions"
        one = method(name, n=SHOE if large else CHECKED_DECK)
        count = min(shuffles, SHOE_SHUFFLES) if large else shuffles
        result = _experiment(one, source, seed, count)
        expected = (not result.wrong) == one.fair
        right &= expected
        if as_json:
            say_json({"shuffle": name, "expected_fair": one.fair} | result.members())
            continue
        outcome = "as expected" if expected else "NOT as expected"
        about = f"{name:<18} {one.n:>3} cards, {count:>7,} shuffles"
        echo(f"{about}: {outcome}. {result.verdict()}")
    _exit_unless(right)


@lab.command(
    help="""Measure the cost of each method as the deck grows: O(n), O(n log n) or constant.

    The numbers of random numbers and comparisons are reproducible; the times are measured on this
    machine over many decks at once, the minimum of a few runs.

    ```
    dealer lab costs
    ```
    """
)
@takes("as_json")
def costs(as_json: bool) -> None:
    _require_packages()
    from dealer.lab import costs as measuring
    from dealer.lab.shuffles import METHODS

    measured: dict[str, list[measuring.Cost]] = {}
    with progress("Measuring") as step:
        for name in METHODS:
            step(len(measured), len(METHODS))
            measured[name] = measuring.costs(name)
    if as_json:
        for name, row in measured.items():
            say_json({"shuffle": name, "costs": [cost._asdict() for cost in row]})
        return
    for line in measuring.cost_lines(measured):
        echo(line)


@lab.command(
    help="""Test the shuffles of played tables statistically.

    Each bundle is verified first. Only shuffles that were recomputed from the secrets count, so
    only those of closed rounds, and not what practice tables laid out. Shuffles with the same
    number of cards and steps are counted together. A test that needs more shuffles says how many.
    The exit code is 1 if a bundle does not verify, or if the shuffles are not fair.

    ```
    dealer lab table 7d02f3c2 b81ef4d7
    dealer lab table --all
    dealer lab table game.jsonl
    ```
    """
)
@click.argument(
    "tables",
    nargs=-1,
    metavar="[TABLE]...",
    help="Tables, by the beginning of their ids, or bundle files.",
)
@flag("--all", "All closed tables of the database.", "all_closed")
@takes("database", "as_json")
async def table(tables: tuple[str, ...], all_closed: bool, database: str, as_json: bool) -> None:
    _require_packages()
    from dealer.lab import experiment
    from dealer.lab.report import Report

    names = [*(tables or ()), *(await _closed(database) if all_closed else ())]
    if not names:
        raise click.BadParameter(
            "This database has no closed table." if all_closed else "Name a table, or use --all."
        )
    # By origin: a table that is named twice, or whose bundle is given besides it, counts once.
    read = {}
    with progress("Reading tables") as step:
        for done, name in enumerate(names):
            step(done, len(names))
            origin, played = await _shuffles(database, name)
            read[origin] = played
    counted = experiment.counted(shuffle for played in read.values() for shuffle in played)
    fair = True
    for kind, counts in counted.items():
        result = Report(counts)
        fair &= not result.wrong
        steps, cards = amount(kind.n - 1, "step"), amount(kind.n, "card")
        heading = f"{kind.algorithm}, {kind.steps} of {steps}, {cards}"
        if as_json:
            say_json({"tables": len(read)} | kind._asdict() | result.members())
            continue
        shuffles = amount(result.tally.shuffles, "shuffle")
        for line in (f"{heading}: {shuffles}.", *result.lines(), ""):
            echo(line)
    if not counted:
        echo_err("These tables have no shuffle in a closed round.")
    _exit_unless(fair)


def _exit_unless(fair: bool) -> None:
    if not fair:
        raise Exit(1)


def _experiment(method: Method, source: str, seed: int | None, shuffles: int) -> Report:
    from dealer.lab import experiment
    from dealer.lab.report import Report
    from dealer.lab.shuffles import number_source

    with usage_errors():
        numbers = number_source(source, n=method.n, seed=seed)
    with progress(f"Shuffling: {method.name}") as step:
        counted = experiment.run(method, numbers, shuffles=shuffles, step=step)
        return Report(counted)


async def _shuffles(database: str, name: str) -> tuple[str | None, list[tuple[Kind, Samples]]]:
    """Origin and shuffles of a verified table; `name`: a bundle file or the beginning of an id."""
    from dealer.lab.experiment import shuffles_of

    lines, notes = await verify.read_table_or_file(name, database)
    report = verify.examine(lines, notes=notes)
    if report.fault is not None:
        raise UnknownTable(f"{name} does not verify, so it is not counted: {report.fault}")
    # What a practice table laid out was not shuffled.
    swaps = (swap for swap in report.swaps if swap.words)
    return report.origin, list(shuffles_of(lines, swaps))


async def _closed(database: str) -> list[str]:
    from dealer.analysis.open_log import AsyncLog

    async with await AsyncLog.open(database, None) as log:
        return [found.table for found in await log.tables() if found.closed]


def _require_packages() -> None:
    """Raise ConfigurationError unless numpy and scipy, which only this package needs, exist."""
    if any(find_spec(package) is None for package in ("numpy", "scipy")):
        raise ConfigurationError(
            "The commands `dealer lab` need numpy and scipy. Install them with "
            "pip install '.[lab]' in the source folder."
        )
