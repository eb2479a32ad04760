"""The cases of the Autobahn test suite: the gateway is as good a server as the library itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.foreign.echo_servers import gateway_echo, library_echo
from tests.harness.installed import missing

RANKS = ["OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED", "FAILED"]
"""Verdicts on the messages of a case, the best first. Compression is not implemented by choice."""


async def verdicts(port: int, cases: list[str] | None = None) -> dict[str, tuple[str, str]]:
    """Of each case the verdicts on its messages and on how the connection was closed."""
    try:
        import kosoku
    except ImportError:
        missing("kosoku is not installed; it runs the cases")
    try:
        results: list[Any] = await kosoku.run_fuzzingclient(
            f"ws://127.0.0.1:{port}", cases=cases, concurrency=1 if cases else 4
        )
    except kosoku.FailureError as failure:
        results = failure.results
    return {one.case_id: (one.behavior.value, one.behavior_close.value) for one in results}


def worse(ours: dict[str, tuple[str, str]], theirs: dict[str, tuple[str, str]]) -> list[str]:
    """The cases whose verdicts of ours are worse."""
    return [
        case
        for case, (behavior, closing) in ours.items()
        if RANKS.index(behavior) > RANKS.index(theirs[case][0])
        or (closing != "OK" and (behavior, closing) != theirs[case])
    ]


@pytest.mark.timeout(180)
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the cases leave their files open
async def test_no_case_is_worse_than_with_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    async with library_echo() as port:
        theirs = await verdicts(port)
    async with gateway_echo(monkeypatch) as port:
        ours = await verdicts(port)
        # Cases have time limits of their own: what others delayed is run again, alone.
        if again := worse(ours, theirs):
            ours |= await verdicts(port, again)
    assert len(ours) > 500
    assert ours.keys() == theirs.keys()
    assert worse(ours, theirs) == []
    assert [behavior for behavior, _ in ours.values()].count("FAILED") <= 1
