"""Is it fair? The house's shuffle, other good ones and well-known wrong ones put to the test."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.lab_bits import bits, dieharder
from dealer.cli.lab_ready import LEVEL, Heat, Histogram, Level, Seed, Source, draw, laboratory
from dealer.cli.lab_table import table
from dealer.cli.options import AsJson, asked_rightly
from dealer.cli.output import progress, say, say_json

if TYPE_CHECKING:
    from dealer.lab.findings import Finding
    from dealer.lab.methods import Method
    from dealer.lab.tally import Counted

CHECKED = 20_000
CHECKED_DECK = 52
SHOE, SHOE_SHUFFLES = 416, 3_000
EXACT_MAX = 5

app = typer.Typer(
    no_args_is_help=True,
    help="Put shuffles to the test: fair ones, wrong ones, and those of tables that were played.",
)


@app.command()
def run(
    deck: Annotated[int, typer.Option(min=0, max=1024, help="How many cards.")] = 52,
    shuffles: Annotated[int, typer.Option(min=1, help="How many times to shuffle.")] = 100_000,
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
            help="How far a partial shuffle goes, or how many transpositions.",
            show_default=False,
        ),
    ] = None,
    carry: Annotated[
        bool, typer.Option("--carry", help="Start each shuffle from where the last one ended.")
    ] = False,
    level: Level = LEVEL,
    histogram: Histogram = None,
    heat: Heat = None,
    as_json: AsJson = False,
) -> None:
    """Shuffle a new deck very many times and say whether chance explains what comes out.

    It counts how often each order came (up to 7 cards), which card came to which place, cards that
    stayed, cycles and rising sequences; and all of it again for what leads from each shuffle to the
    next. p is the chance to be as far off if all is fair; Holm's correction allows for the number
    of questions. The exit code is 1 if the shuffle is not fair.

    ```
    dealer lab run --deck 4 --shuffles 600000
    dealer lab run --shuffle swap-any --heat swap-any.svg
    dealer lab run --shuffle partial --steps 13 --source tape
    ```
    """
    laboratory()
    from dealer.lab import histogram as bars
    from dealer.lab import pictures, report
    from dealer.lab.findings import caught
    from dealer.lab.methods import method

    with asked_rightly():
        chosen = method(shuffle, n=deck, steps=steps)
    begun = time.perf_counter()
    counted, found = _experiment(chosen, source, seed, shuffles, carry)
    seconds = time.perf_counter() - begun
    shown = bars.histogram(counted.shuffles)
    heading = f"{shuffle}: {chosen.sentence}"
    if histogram is not None:
        draw(histogram, pictures.bars(shown, heading))
    if heat is not None:
        draw(heat, pictures.heat(counted.shuffles, heading))
    if as_json:
        members = report.members(counted.shuffles, found, level)
        say_json({"shuffle": shuffle, "source": source, "seed": seed} | members)
    else:
        say(f"{heading}. {shuffles:,} shuffles of {deck} cards in {seconds:.1f} s, numbers from "
            f"{source}.")  # fmt: skip
        if chosen.sample < deck:
            say(f"Only the top {chosen.sample} places are looked at.")
        lines = report.frequencies(counted.shuffles)
        for line in (*lines, "", f"{shown.title}:", *bars.lines(shown), ""):
            say(line)
        for line in report.findings(found, level):
            say(line)
    if caught(found, level):
        raise typer.Exit(1)


def _experiment(
    method: Method, source: str, seed: int | None, shuffles: int, carry: bool = False
) -> tuple[Counted, list[Finding]]:
    from dealer.lab import experiment
    from dealer.lab.findings import judge
    from dealer.lab.sources import dice_from

    with asked_rightly():
        dice = dice_from(source, n=method.n, seed=seed)
    with progress(f"Shuffling: {method.name}") as step:
        counted = experiment.run(method, dice, shuffles=shuffles, carry=carry, step=step)
    return counted, judge(counted)


@app.command()
def check(
    source: Source = "system",
    seed: Seed = None,
    shuffles: Annotated[
        int, typer.Option(min=1000, help="How many times to shuffle by each method.")
    ] = CHECKED,
    level: Level = LEVEL,
    maps: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Draw a map of places and cards for each method.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try every method: the fair ones must pass, and each wrong one must be caught.

    Decks have 52 cards. A thousand transpositions hide their bias there too well for any count of
    shuffles, and are tried on eight decks, 416 cards. The exit code is 1 if a verdict is not the
    right one: then do not believe the other verdicts either.

    ```
    dealer lab check
    dealer lab check --source tape --maps pictures
    ```
    """
    laboratory()
    from dealer.lab import pictures, report
    from dealer.lab.findings import caught
    from dealer.lab.methods import METHODS, method

    right = True
    for name in METHODS:
        large = name == "transpositions"
        one = method(name, n=SHOE if large else CHECKED_DECK)
        count = min(shuffles, SHOE_SHUFFLES) if large else shuffles
        counted, found = _experiment(one, source, seed, count)
        fair = not caught(found, level)
        right &= fair == one.fair
        if maps is not None:
            draw(maps / f"{name}.svg", pictures.heat(counted.shuffles, f"{name}: {one.sentence}"))
        if as_json:
            members = report.members(counted.shuffles, found, level)
            say_json({"shuffle": name, "expected_fair": one.fair} | members)
        else:
            met = "as it should be" if fair == one.fair else "and that is wrong"
            say(f"{name:<18} {one.n:>3} cards, {count:>7,} shuffles: {met}. "
                f"{report.verdict(found, level)}")  # fmt: skip
    if not right:
        raise typer.Exit(1)


@app.command()
def exact(
    deck: Annotated[int, typer.Option(min=2, max=EXACT_MAX, help="How many cards.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Leave nothing to chance: try every choice that each method can make with a few cards.

    A method is fair if each order has the same chance, as a fraction and not nearly. Where that is
    not so, the worst order's part of a fair chance is told: 1 is an order that never comes, or one
    that comes twice as often as it should.

    ```
    dealer lab exact --deck 4
    ```
    """
    laboratory()
    from dealer.lab.exact import of_method, unfairness
    from dealer.lab.methods import METHODS

    for name in METHODS:
        chances, sample = of_method(name, deck)
        off = unfairness(chances, deck, sample)
        if as_json:
            say_json({"shuffle": name, "cards": deck, "sample": sample, "off": _fraction(off),
                      "orders": len(chances.chances)})  # fmt: skip
        elif off:
            say(f"{name:<18} not fair: {len(chances.chances)} orders can come, the worst is off by "
                f"{_fraction(off)} of its fair chance")  # fmt: skip
        else:
            say(f"{name:<18} fair")


def _fraction(value: Any) -> str:
    """A fraction as it is, or its size where it has too many digits."""
    import math

    text = str(value)
    if len(text) <= 20:
        return text
    return f"about 1e{math.log10(value.numerator) - math.log10(value.denominator):+.1f}"


@app.command()
def costs(
    as_json: AsJson = False,
) -> None:
    """Measure what each method costs as the deck grows: O(n), O(n log n), or the same for all.

    Random numbers and comparisons are counted, and are the same every time; the times are those of
    this machine, of the plain functions, the quickest of a few rounds.

    ```
    dealer lab costs
    ```
    """
    laboratory()
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
        say(line)


app.command()(table)
app.command()(bits)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(dieharder)
