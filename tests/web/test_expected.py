"""The numbers that the audit page's chart shows as usual, against exact ones."""

from __future__ import annotations

import json

import pytest

from tests.harness.programs import output_of
from tests.web.js_verifier import FILE, node

PROGRAM = """
const { expected, histogramOf } = await import(MODULE);
console.log(JSON.stringify({ rows: expected(N, STEPS), some: histogramOf([1, 3, 1]) }));
"""


def expected(n: int, steps: int) -> list[dict[str, float]]:
    given = {"MODULE": (FILE.parent / "audit" / "expected.js").as_uri(), "N": n, "STEPS": steps}
    names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
    command = [node(), "--input-type=module", "-e", names + PROGRAM]
    found = json.loads(output_of(*command))
    assert found["some"] == [0, 2, 0, 1]
    rows: list[dict[str, float]] = found["rows"]
    return rows


@pytest.mark.parametrize(("n", "steps"), [(2, 1), (52, 51), (52, 3), (416, 415)])
def test_the_means_are_those_of_fair_shuffles(n: int, steps: int) -> None:
    rows = expected(n, steps)
    assert sum(row["mean"] for row in rows) == pytest.approx(n)
    # A swap has two cards, or one where i = j, of which the chance is 1 in i + 1.
    exact = sum(2 - 1 / (n - step) for step in range(steps))
    assert sum(count * row["mean"] for count, row in enumerate(rows)) == pytest.approx(
        exact, rel=0.02
    )
    assert all(row["low"] <= row["mean"] + 0.5 and row["mean"] - 0.5 <= row["high"] for row in rows)
    assert any(row["low"] < row["high"] for row in rows)


def test_the_most_frequent_counts_of_two_cards_are_exact() -> None:
    """Two cards: half of the shuffles swap both once, half leave one at its place."""
    none, once = expected(2, 1)
    assert none["mean"] == pytest.approx(0.5, abs=0.06)
    assert once["mean"] == pytest.approx(1.5, abs=0.06)
