"""The questions of dealer/analysis/QUESTIONS.md: their SQL and their printed answers.

`python -m tests.analysis.questions` writes the answers again, from the recorded game on SQLite.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import dealer
from tests.analysis.recorded import record

DOCUMENT = Path(__file__).parents[2] / "dealer" / "analysis" / "QUESTIONS.md"
_QUESTION = re.compile(r"^## (\d+\. .*)$", re.MULTILINE)
_SQL = re.compile(r"```sql\n(.*?)```\n", re.DOTALL)


class Question(NamedTuple):
    """A question: its statement, and the lines of the table under it."""

    title: str
    sql: str
    answer: list[str]


def read(text: str) -> list[Question]:
    _, *parts = _QUESTION.split(text)
    found = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        (sql,) = _SQL.findall(body)
        answer = [line for line in body.splitlines() if line.startswith("|")]
        found.append(Question(title, sql.strip(), answer))
    return found


def as_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of a table in Markdown, the same for both databases."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(one) for one in row.values()] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        value = int(value)  # PostgreSQL's sum of whole numbers
    return f"{value:.3f}" if isinstance(value, float | Decimal) else str(value)


def write_answers() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/dealer.db"
        asyncio.run(record(url, Path(folder) / "house.key"))
        with dealer.open_log(url) as log:
            for question in read(text):
                before = "\n".join(question.answer)
                if before:
                    text = text.replace(f"\n{before}\n", "")
                after = "\n".join(as_table(log.query(question.sql)))
                text = text.replace(f"{question.sql}\n```\n", f"{question.sql}\n```\n\n{after}\n")
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_answers()
