"""Settings of the pages: origins of frames, title, logo and colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dealer.config.checks import CONTRAST, LOGO_MAX, contrast, palette
from dealer.config.settings import Settings
from dealer.errors import ConfigurationError


@pytest.mark.parametrize(
    "origin", ["https://game.example.org", "http://localhost:3000", "https://10.0.0.1:65535"]
)
def test_an_origin_has_a_scheme_a_host_and_perhaps_a_port(origin: str) -> None:
    assert Settings(frame_ancestors=(origin,)).frame_ancestors == (origin,)


@pytest.mark.parametrize(
    "origin",
    [
        "game.example.org",
        "https://game.example.org/",
        "https://game.example.org/path",
        "https://*.example.org",
        "*",
        "https:",
        "ftp://game.example.org",
        "https://game.example.org:0",
        "https://game.example.org:65536",
        "https://user@game.example.org",
        "https://a.example; script-src *",
        "https://a.example https://b.example",
        "https://[::1]",
        "'self'",
        "",
    ],
)
def test_anything_else_is_refused_at_the_start(origin: str) -> None:
    sentence = "^--frame-ancestor must be an origin like https://game.example.org"
    if origin == "'self'":
        sentence = "is in quotation marks: leave them out"
    with pytest.raises(ConfigurationError, match=sentence):
        Settings(frame_ancestors=("https://good.example", origin))


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "null", "https://Game.example.:443", "https://käse.example"),
        *("http://[::1]:3000", "chrome-extension://abcdefgh"),
    ],
)
def test_an_origin_that_may_connect_has_no_path(origin: str) -> None:
    assert Settings(origins=(origin,)).origins == (origin,)
    for wrong in (f"{origin}/", "game.example", "https://x:70000", ""):
        with pytest.raises(ConfigurationError, match=r"^--origin must be an origin like https:"):
            Settings(origins=(origin, wrong))


@pytest.mark.parametrize("name", ["käse.example", "*.KÄSE.example", "xn--kse-qla.example."])
def test_a_name_may_have_letters_of_any_script(name: str) -> None:
    assert Settings(host_names=(name,)).host_names == (name,)
    with pytest.raises(ConfigurationError, match=r"^--host-name must be a name like"):
        Settings(host_names=(f"{name}/cards",))


@pytest.mark.parametrize("title", ["", "  ", "a\nb", "a\u202eb", "x" * 65])
def test_a_title_is_short_and_printable(title: str) -> None:
    assert Settings(title="Ada’s <club>").title == "Ada’s <club>"
    with pytest.raises(ConfigurationError, match="--title must have 1 to 64 printable"):
        Settings(title=title)


def test_a_logo_is_a_small_image_file(tmp_path: Path) -> None:
    def logo(name: str, size: int = 1) -> Path:
        (tmp_path / name).write_bytes(b"x" * size)
        return tmp_path / name

    assert Settings(logo=logo("a.PNG", LOGO_MAX)).logo is not None
    for path, sentence in (
        (logo("a.html"), "ends with .svg, .png, .jpg, .webp"),
        (logo("b.png", LOGO_MAX + 1), "has 131,073 bytes"),
        (logo("c.svg", 0), "has 0 bytes"),
        (tmp_path / "missing.svg", "cannot be read: No such file"),
    ):
        with pytest.raises(ConfigurationError, match=f"--logo.*{sentence}"):
            Settings(logo=path)


def read(*values: str) -> dict[str, str]:
    return palette("--colour", values)


def test_a_colour_brings_the_others_that_are_read_on_it() -> None:
    assert read() == {}
    assert read("accent=#FFCC00") == {"--accent": "#ffcc00", "--accent-ink": "#000000"}
    assert read("accent=#1b5a43") == {"--accent": "#1b5a43", "--accent-ink": "#ffffff"}
    felt = read("felt=#1d3b6a")
    assert felt["--felt"] == "#1d3b6a"
    for surface in ("--felt", "--felt-deep"):
        for ink in ("--felt-ink", "--felt-ink-muted"):
            assert contrast(felt[surface], felt[ink]) >= CONTRAST


def test_the_contrast_is_that_of_wcag() -> None:
    assert round(contrast("#ffffff", "#000000"), 2) == 21.0
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["felt=#3a7a60"], "light text on a table of #3a7a60 .* is 3.69:1, .* a darker felt"),
        (["felt=#ffffff"], "could not be read"),
        (["accent=#777777", "accent-ink=#ffffff"], "text of #ffffff on buttons of #777777 .*4.47"),
        (["accent-ink=#ffffff"], "needs the colour accent"),
        (["felt=red"], "must be NAME=#RRGGBB"),
        (["felt=#123"], "must be NAME=#RRGGBB"),
        (["paper=#ffffff"], "the names are accent, accent-ink, felt"),
        (["felt=#000000", "felt=#111111"], "once for each name"),
        (["felt=#000000;}body{x:url(//evil)"], "must be NAME=#RRGGBB"),
    ],
)
def test_colours_on_which_text_is_unreadable_are_refused(values: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^--colour.*{sentence}"):
        Settings(colours=tuple(values))
