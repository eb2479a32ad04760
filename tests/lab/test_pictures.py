"""Bars and maps show the counts: every cell of a picture is read back from its SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dealer.lab.experiment import Tally, run
from dealer.lab.pictures import bars, heat
from dealer.lab.report import Bar, Histogram, histogram, lines
from dealer.lab.shuffles import METHODS, method, number_source

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"


def tally(name, n, shuffles):
    numbers = number_source("pcg64", n=n, seed=1)
    return run(method(name, n=n), numbers, shuffles=shuffles).shuffles


def cells_of(picture, size):
    """The colour of each cell, the top place first; '' for white."""
    colours = [[""] * size for _ in range(size)]
    for path in ElementTree.fromstring(picture).iterfind(f"{SVG}g/{SVG}path"):
        for x, y, run_ in re.findall(r"M(\d+) (\d+)h(\d+)", path.attrib["d"]):
            for column in range(int(x), int(x) + int(run_)):
                assert colours[int(y)][column] == ""
                colours[int(y)][column] = path.attrib["stroke"]
    return colours


def red(colour):
    return colour and int(colour[1:3], 16) > int(colour[5:7], 16)


def test_a_map_shows_the_diagonal_that_sattolo_leaves_empty():
    picture = heat(tally("sattolo", 20, 20_000), "sattolo")
    for row, colours in enumerate(cells_of(picture, 20)):
        for column, colour in enumerate(colours):
            diagonal = column == 19 - row
            assert (colour != "" and not red(colour)) == diagonal


def test_a_map_of_a_fair_shuffle_is_white():
    colours = cells_of(heat(tally("backward", 52, 20_000), "backward"), 52)
    assert sum(colour != "" for row in colours for colour in row) < 12


def test_red_cells_are_those_with_too_many_cards():
    counts = Tally(n=3, k=3)
    counts.cells = np.array([[900, 1000, 1100], [1000, 1000, 1000], [1100, 1000, 900]])
    counts.shuffles = 3000
    colours = cells_of(heat(counts, "by hand"), 3)
    shown = [["red" if red(one) else "blue" if one else "" for one in row] for row in colours]
    assert shown == [["", "", ""]] * 3  # 100 of 1000 is three standard deviations
    counts.cells *= 4
    counts.shuffles *= 4
    colours = cells_of(heat(counts, "by hand"), 3)
    shown = [["red" if red(one) else "blue" if one else "" for one in row] for row in colours]
    assert shown == [["red", "", "blue"], ["", "", ""], ["blue", "", "red"]]


def test_large_decks_are_shown_in_blocks():
    picture = heat(tally("transpositions", 416, 1000), "transpositions")
    colours = cells_of(picture, 104)
    assert sum(bool(red(colours[103 - at][at])) for at in range(104)) > 80
    assert "415" in picture
    uneven = heat(tally("sattolo", 105, 20_000), "blocks of two, the last of one")
    assert len(cells_of(uneven, 53)) == 53


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("name", METHODS)
def test_pictures_of_small_decks_are_whole(name, n):
    counts = tally(name, n, 30)
    for picture in (heat(counts, "a < b & 'c'"), bars(histogram(counts), "a < b & 'c'")):
        page = ElementTree.fromstring(picture)
        assert page.tag == f"{SVG}svg"
        assert "a < b & 'c'" in [text.text for text in page.iter(f"{SVG}text")]
        assert "nan" not in picture


def test_a_picture_is_small():
    assert len(heat(tally("swap-any", 52, 50_000), "swap-any").encode()) < 12_000


def test_bars_of_each_order():
    shown = histogram(tally("backward", 3, 600))
    assert [bar.label for bar in shown.bars] == [
        "0 1 2", "0 2 1", "1 0 2", "1 2 0", "2 0 1", "2 1 0",
    ]  # fmt: skip
    assert sum(bar.times for bar in shown.bars) == 600
    assert {bar.expected for bar in shown.bars} == {100}


@pytest.mark.parametrize(
    ("n", "shuffles", "counted"), [(6, 5000, 720), (6, 50, 36), (10, 5000, 100)]
)
def test_a_histogram_is_drawn_if_there_are_too_many_orders(n, shuffles, counted):
    shown = histogram(tally("backward", n, shuffles))
    assert sum(bar.times for bar in shown.bars) == counted
    assert sum(bar.expected for bar in shown.bars) == pytest.approx(counted)
    assert [bar.label for bar in shown.bars[:2]] == ["under -4", "-4 to -3.5"]
    middle = [bar for bar in shown.bars if bar.label in ("-0.5 to 0", "0 to 0.5")]
    assert [bar.expected / counted for bar in middle] == pytest.approx([0.19146] * 2, abs=1e-5)


def test_a_histogram_counts_each_order_in_its_interval():
    counts = Tally(n=8, k=8)
    counts.shuffles = 800
    counts.cells = np.full((8, 8), 100)
    spread = (800 * 7 / 64) ** 0.5
    counts.cells[0, :4] = [100 + 5 * spread, 100 - 5 * spread, 100 + 2.2 * spread, 99]
    times = {bar.label: bar.times for bar in histogram(counts).bars if bar.times}
    assert times == {"over 4": 1, "under -4": 1, "2 to 2.5": 1, "-0.5 to 0": 1, "0 to 0.5": 60}


def test_lines_for_a_terminal():
    shown = Histogram("Cards", [Bar("a", 1000, 500.0), Bar("bc", 250, 500.0), Bar("d", 0, 0.0)])
    assert lines(shown, width=8) == [
        "Cards (│ is where a fair bar would end):",
        " a  1,000  ████████",
        "bc    250  ██  │",
        " d      0  │",
    ]
    assert lines(Histogram("", [])) == []


def test_bars_are_as_long_as_their_counts():
    page = bars(Histogram("", [Bar("a", 1000, 500.0), Bar("b", 250, 500.0)]), "")
    tall = [float(found) for found in re.findall(r"v-([\d.]+)h\d+v", page)]
    assert tall == [220, 55]
