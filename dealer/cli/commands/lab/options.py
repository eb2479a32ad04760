"""Options and functions that the `dealer lab` commands share."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.files import STANDARD_OUTPUT, is_stored, writing
from dealer.cli.output import echo, echo_err
from dealer.errors import ConfigurationError

LEVEL = 1e-6

Source = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Source of the random numbers: system (random bytes of this machine), tape (as at a "
        "table, one for each shuffle), pcg64 or mersenne (seeded generators).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed for reproducible numbers; not with system.", show_default=False),
]
Level = Annotated[
    float, typer.Option(min=1e-30, max=1.0, help="Significance level of the verdict.")
]
Histogram = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.svg",
        help="Write the histogram as an SVG file; - for standard output.",
        show_default=False,
    ),
]
Heat = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.svg",
        help="Write a heat map of cards and places as an SVG file; - for standard output.",
        show_default=False,
    ),
]


def require_packages() -> None:
    """Raise ConfigurationError unless numpy and scipy, which only this package needs, exist."""
    if any(find_spec(package) is None for package in ("numpy", "scipy")):
        raise ConfigurationError(
            "The commands `dealer lab` need numpy and scipy. Install them with "
            "pip install '.[lab]' in the source folder."
        )


def report_beside(*pictures: str | None) -> Callable[[str], None]:
    """Prints a line of the report: on standard error if a picture goes to standard output."""
    on_output = pictures.count(STANDARD_OUTPUT)
    if on_output > 1:
        raise typer.BadParameter("Only one picture can go to standard output.")
    return echo_err if on_output else echo


def draw(name: str, picture: str) -> None:
    """Write an SVG, if necessary in a new folder; raises ConfigurationError if it cannot be."""
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be written: {error.strerror}.") from None
    with writing(name) as file:
        file.write(picture.encode())
    if is_stored(name):
        echo_err(f"Written: {name}")
