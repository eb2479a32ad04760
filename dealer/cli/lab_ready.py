"""What the commands of the laboratory share: that it can be used at all, options, pictures."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.output import remark
from dealer.errors import SetupError

LEVEL = 1e-6

Source = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where the numbers come from: system (fresh bytes of this machine), tape (of the "
        "house, another for each shuffle), pcg64 or mersenne (engines with a seed).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="To get the same numbers again; not with system.", show_default=False),
]
Level = Annotated[
    float, typer.Option(min=1e-30, max=1.0, help="What chance is too small to be believed.")
]
Histogram = Annotated[
    Path | None,
    typer.Option(metavar="FILE.svg", help="Draw the bars as a picture.", show_default=False),
]
Heat = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.svg", help="Draw which card came to which place.", show_default=False
    ),
]


def laboratory() -> None:
    """Raises SetupError where numpy is not installed: nothing else needs it."""
    if find_spec("numpy") is None:
        raise SetupError(
            "The laboratory needs numpy, which the house does not: pip install '.[lab]' in the "
            "folder of the source"
        )


def draw(file: Path, picture: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{file} cannot be written: {error.strerror}.") from None
    remark(f"A picture is in {file}")
