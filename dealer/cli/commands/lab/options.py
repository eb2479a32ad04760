"""Options and functions that the `dealer lab` commands share."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.output import echo_err
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
    Path | None,
    typer.Option(
        metavar="FILE.svg", help="Write the histogram as an SVG file.", show_default=False
    ),
]
Heat = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.svg",
        help="Write a heat map of cards and places as an SVG file.",
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


def draw(file: Path, picture: str) -> None:
    """Write an SVG; raises ConfigurationError if the file cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from None
    echo_err(f"Written: {file}")
