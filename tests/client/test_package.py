"""Exported names of the client, and the example in its documentation."""

from __future__ import annotations

import asyncio
import contextlib
import io
import textwrap

import pytest

import dealer.client


@pytest.mark.parametrize("old", sorted(dealer.client.DEPRECATED))
def test_old_names_are_deprecated_aliases(old):
    with pytest.warns(DeprecationWarning, match=dealer.client.DEPRECATED[old]):
        alias = getattr(dealer.client, old)
    assert alias is getattr(dealer.client, dealer.client.DEPRECATED[old])


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = dealer.client.Nonsense


async def test_the_example_runs(real_server):
    document = dealer.client.__doc__
    assert document is not None
    code = document.split("\n\n", 1)[1].split("\n\nThe connection")[0]
    program = textwrap.dedent(code).replace("ws://localhost:8080/ws", real_server.url)
    output = io.StringIO()

    def run() -> None:
        with contextlib.redirect_stdout(output):
            exec(program, {})

    await asyncio.to_thread(run)
    hand = output.getvalue()
    assert hand.count("'") == 8
    assert hand.endswith(" 50\n")
