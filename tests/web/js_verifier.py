"""Calls the JavaScript verifier from Python: many requests to one process."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dealer.proof.verify import CHECKS, Report, Swap, verify
from tests.harness.installed import missing
from tests.harness.programs import output_of

FILE = Path(__file__).parents[2] / "dealer" / "web" / "verify.js"
_SCRIPT = Path(__file__).with_name("js_verifier.mjs")
LOCAL_FETCH = Path(__file__).with_name("local_fetch.mjs").as_uri()
"""Imported before a module of the pages, so that it can fetch its texts in node."""
Line = str | bytes


def node() -> str:
    """The path of node. Without node a test is skipped, and fails in CI."""
    return shutil.which("node") or missing("node is not installed")


def run_module(program: str) -> Any:
    """The value that a module prints as JSON; modules of the pages can fetch their texts."""
    command = [node(), "--import", LOCAL_FETCH, "--input-type=module", "--eval", program]
    return json.loads(output_of(*command))


def ask(questions: Iterable[dict[str, Any]]) -> list[Any]:
    """The results of requests `{"do": …}`, in order."""
    with tempfile.TemporaryFile("w+") as sent:
        count = 0
        for count, question in enumerate(questions, 1):  # noqa: B007
            sent.write(json.dumps(question) + "\n")
        sent.seek(0)
        done = subprocess.run(
            [node(), str(_SCRIPT)],
            stdin=sent,
            capture_output=True,
            check=False,
            text=True,
            encoding="utf-8",
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert len(answers) == count, done.stderr
    return answers


class Bundle(NamedTuple):
    """The input of a verifier."""

    name: str
    lines: Sequence[Line]
    key: str | None = None
    saved: Sequence[str] = ()
    source: Sequence[Line] | None = None


def question(bundle: Bundle) -> dict[str, Any]:
    return {
        "do": "verify",
        "lines": list(map(_line, bundle.lines)),
        "key": bundle.key,
        "saved": list(bundle.saved),
        "source": None if bundle.source is None else list(map(_line, bundle.source)),
        "swaps": True,
    }


def _line(line: Line) -> str | dict[str, str]:
    if isinstance(line, str):
        return line
    try:
        return line.decode()
    except UnicodeDecodeError:
        return {"hex": line.hex()}


def first(bundle: Bundle) -> Report:
    """The report of the Python verifier."""
    return verify(bundle.lines, key=bundle.key, saved=bundle.saved, source=bundle.source)


class Disagreement(NamedTuple):
    name: str
    python: Any
    javascript: Any


def compare(bundles: Sequence[Bundle]) -> tuple[list[Disagreement], list[Report]]:
    """The disagreements of the two verifiers, and the Python verifier's report on each bundle."""
    reports = [first(bundle) for bundle in bundles]
    answers = ask(map(question, bundles))
    found = []
    for bundle, report, answer in zip(bundles, reports, answers, strict=True):
        for ours, theirs in zip(_of_python(report), _of_javascript(answer), strict=True):
            if ours != theirs:
                found.append(Disagreement(bundle.name, ours, theirs))
                break
    return found, reports


def as_json(swap: Swap) -> dict[str, Any]:
    """A swap with the names of verify.js."""
    members = swap._asdict()
    index = members.pop("shuffle_index")
    return members | {"k": index, "words": [*swap.words], "cards": [*swap.cards]}


def _of_python(report: Report) -> Iterator[Any]:
    fault = report.fault
    yield None if fault is None else (fault.check, fault.line)
    yield asdict(report.remarks)
    yield [as_json(swap) for swap in report.swaps]
    yield sorted(
        [key, report.names[key], count, report.cosigned_upto[key]]
        for key, count in report.cosigners.items()
    )
    yield report.origin, report.key, report.saved
    yield [str(one) for one in report.results() if one.state != "failed"]
    yield None if report.practice is None else asdict(report.practice)
    yield sorted(report.lines()[len(CHECKS) :])


def _of_javascript(answer: dict[str, Any]) -> Iterator[Any]:
    fault = answer["fault"]
    yield None if fault is None else (fault["check"], fault["line"])
    yield answer["remarks"]
    yield answer["swaps"]
    yield sorted(
        [one["key"], one["name"], one["count"], one["size"]] for one in answer["cosigners"]
    )
    yield answer["origin"], answer["key"], answer["saved"]
    yield [line for line in answer["lines"][: len(CHECKS)] if not line.startswith("failed: ")]
    yield answer["practice"]
    yield sorted(answer["lines"][len(CHECKS) :])
