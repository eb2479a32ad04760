"""`dealer lab run, check, exact, costs`: statistical tests of fair and biased shuffles."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.commands.lab.bits import bits, dieharder
from dealer.cli.commands.lab.options import (
    LEVEL,
    Heat,
    Histogram,
    Level,
    Seed,
    Source,
    draw,
    report_beside,
    require_packages,
)
from dealer.cli.commands.lab.played import table
from dealer.cli.options import AsJson, Commands, usage_errors
from dealer.cli.output import echo, progress, say_json

if TYPE_CHECKING:
    from dealer.lab.counts import Counted
    from dealer.lab.methods import Method
    from dealer.lab.verdicts import Finding

CHECKED = 20_000
CHECKED_DECK = 52
SHOE, SHOE_SHUFFLES = 416, 3_000
EXACT_MAX = 5

app = Commands(
    no_args_is_help=True,
    help="Test shuffles statistically: fair methods, biased ones, and those of played tables.",
)


@app.command()
def run(
    deck: Annotated[int, typer.Option(min=0, max=1024, help="Number of cards.")] = 52,
    shuffles: Annotated[int, typer.Option(min=1, help="Number of shuffles.")] = 100_000,
    shuffle: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Fair: backward, forward, partial, random-key, visited-set. Wrong: swap-any, "
            "swap-any-but-last, random-comparator, transpositions, sattolo.",
        ),
    ] = "backward",
    source: Source = "system",
    seed: Seed = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of steps of a partial shuffle, or of transpositions.",
            show_default=False,
        ),
    ] = None,
    carry: Annotated[
        bool, typer.Option("--carry", help="Start each shuffle from the result of the one before.")
    ] = False,
    level: Level = LEVEL,
    histogram: Histogram = None,
    heat: Heat = None,
    as_json: AsJson = False,
) -> None:
    """Shuffle a new deck many times and test whether the results are those of a fair shuffle.

    It counts the orders (up to 7 cards), the cards at each place, fixed points, cycles and rising
    sequences, both of the shuffles and of the permutations from each shuffle to the next. p is the
    probability of at least this deviation for a fair shuffle, with Holm's correction for the number
    of tests. The exit code is 1 if the shuffle is not fair.

    ```
    dealer lab run --deck 4 --shuffles 600000
    dealer lab run --shuffle swap-any --heat swap-any.svg
    dealer lab run --shuffle partial --steps 13 --source tape
    ```
    """
    require_packages()
    from dealer.lab import histogram as bars
    from dealer.lab import pictures, report
    from dealer.lab.methods import method
    from dealer.lab.verdicts import significant

    say = report_beside(histogram, heat)
    with usage_errors():
        chosen = method(shuffle, n=deck, steps=steps)
    started = time.perf_counter()
    counted, found = _experiment(chosen, source, seed, shuffles, carry)
    seconds = time.perf_counter() - started
    shown = bars.histogram(counted.shuffles)
    heading = f"{shuffle}: {chosen.sentence}"
    if histogram is not None:
        draw(histogram, pictures.bars(shown, heading))
    if heat is not None:
        draw(heat, pictures.heat(counted.shuffles, heading))
    if as_json:
        members = report.members(counted.shuffles, found, level)
        say_json({"shuffle": shuffle, "source": source, "seed": seed} | members, say=say)
    else:
        say(f"{heading}. {shuffles:,} shuffles of {deck} cards in {seconds:.1f} s, numbers from "
            f"{source}.")  # fmt: skip
        if chosen.sample < deck:
            say(f"Only the top {chosen.sample} places are tested.")
        lines = report.frequencies(counted.shuffles)
        for line in (*lines, "", f"{shown.title}:", *bars.lines(shown), ""):
            say(line)
        for line in report.findings(found, level):
            say(line)
    if significant(found, level):
        raise typer.Exit(1)


def _experiment(
    method: Method, source: str, seed: int | None, shuffles: int, carry: bool = False
) -> tuple[Counted, list[Finding]]:
    from dealer.lab import experiment
    from dealer.lab.sources import number_source
    from dealer.lab.verdicts import evaluate

    with usage_errors():
        numbers = number_source(source, n=method.n, seed=seed)
    with progress(f"Shuffling: {method.name}") as step:
        counted = experiment.run(method, numbers, shuffles=shuffles, carry=carry, step=step)
    return counted, evaluate(counted)


@app.command()
def check(
    source: Source = "system",
    seed: Seed = None,
    shuffles: Annotated[
        int, typer.Option(min=1000, help="Number of shuffles for each method.")
    ] = CHECKED,
    level: Level = LEVEL,
    maps: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a heat map of cards and places for each method.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test every method: the fair ones must pass, and each biased one must be detected.

    Decks have 52 cards, except for a thousand transpositions: their bias is too small to measure
    there, so they are tested with eight decks, 416 cards. The exit code is 1 if a verdict is wrong:
    then do not trust the other verdicts either.

    ```
    dealer lab check
    dealer lab check --source tape --maps pictures
    ```
    """
    require_packages()
    from dealer.lab import pictures, report
    from dealer.lab.methods import METHODS, method
    from dealer.lab.verdicts import significant

    right = True
    for name in METHODS:
        large = name == "transpositions"
        one = method(name, n=SHOE if large else CHECKED_DECK)
        count = min(shuffles, SHOE_SHUFFLES) if large else shuffles
        counted, found = _experiment(one, source, seed, count)
        fair = not significant(found, level)
        right &= fair == one.fair
        if maps is not None:
            draw(
                str(maps / f"{name}.svg"),
                pictures.heat(counted.shuffles, f"{name}: {one.sentence}"),
            )
        if as_json:
            members = report.members(counted.shuffles, found, level)
            say_json({"shuffle": name, "expected_fair": one.fair} | members)
        else:
            outcome = "as expected" if fair == one.fair else "NOT as expected"
            echo(f"{name:<18} {one.n:>3} cards, {count:>7,} shuffles: {outcome}. "
                f"{report.verdict(found, level)}")  # fmt: skip
    if not right:
        raise typer.Exit(1)


@app.command()
def exact(
    deck: Annotated[int, typer.Option(min=2, max=EXACT_MAX, help="Number of cards.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Compute exact probabilities by enumerating every choice of each method with a few cards.

    A method is fair if all orders have exactly the same probability. Otherwise the largest relative
    deviation is printed: 1 means an order that is impossible, or twice as probable as it should be.

    ```
    dealer lab exact --deck 4
    ```
    """
    require_packages()
    from dealer.lab.exact import of_method, unfairness
    from dealer.lab.methods import METHODS

    for name in METHODS:
        chances, sample = of_method(name, deck)
        off = unfairness(chances, deck, sample)
        if as_json:
            say_json({"shuffle": name, "cards": deck, "sample": sample, "off": _fraction(off),
                      "orders": len(chances.chances)})  # fmt: skip
        elif off:
            echo(f"{name:<18} not fair: {len(chances.chances)} orders are possible, "
                f"with a deviation of up to "
                f"{_fraction(off)} of the fair probability")  # fmt: skip
        else:
            echo(f"{name:<18} fair")


def _fraction(value: Any) -> str:
    """A fraction as text, or its order of magnitude if it has too many digits."""
    import math

    text = str(value)
    if len(text) <= 20:
        return text
    return f"about 1e{math.log10(value.numerator) - math.log10(value.denominator):+.1f}"


@app.command()
def costs(
    as_json: AsJson = False,
) -> None:
    """Measure the cost of each method as the deck grows: O(n), O(n log n) or constant.

    The numbers of random numbers and comparisons are reproducible; the times are measured on this
    machine with the functions for single decks, the minimum of a few runs.

    ```
    dealer lab costs
    ```
    """
    require_packages()
    from dealer.lab import costs as lab
    from dealer.lab.methods import METHODS

    with progress("Measuring") as step:
        measured = {}
        for done, name in enumerate(METHODS):
            step(done, len(METHODS))
            measured[name] = lab.costs(name)
    if as_json:
        for name, row in measured.items():
            say_json({"shuffle": name, "costs": [cost._asdict() for cost in row]})
        return
    for line in lab.table(measured):
        echo(line)


app.command()(table)
app.command()(bits)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(dieharder)
