"""Exported names of the client, and the example in its documentation."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import subprocess
import sys
import textwrap

import dealer
import dealer.client
import dealer.errors


def test_every_exception_is_exported():
    assert set(dealer.errors.__all__) <= set(dealer.__all__)
    assert {kind for kind in vars(dealer.errors).values() if inspect.isclass(kind)} == {
        getattr(dealer, name) for name in dealer.errors.__all__
    }


def test_a_refusal_is_no_fault_of_the_database():
    kinds = [getattr(dealer, name) for name in dealer.errors.__all__]
    refusals = [kind for kind in kinds if issubclass(kind, dealer.Refused)]
    faults = [kind for kind in kinds if issubclass(kind, dealer.DatabaseError)]
    assert len(refusals) > 30
    assert len(faults) > 8
    assert not set(refusals) & set(faults)


def test_the_package_is_an_attribute_of_dealer():
    """Imported on first use, as its names are."""
    program = "import dealer; print(dealer.client.connect is dealer.connect)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert printed.stdout == b"True\n"


def public_names():
    """Names and objects: those that `dealer` and `dealer.client` export, and their members."""
    for module in (dealer, dealer.client):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.isclass(value) and not callable(value):
                continue
            yield name, value
            for member, inner in vars(value).items() if inspect.isclass(value) else ():
                if not member.startswith("_") and (callable(inner) or isinstance(inner, property)):
                    yield f"{name}.{member}", inner


def test_every_public_name_has_a_docstring():
    names = dict(public_names())
    assert len(names) > 100
    # A NamedTuple's or a dataclass's own text would only repeat its signature.
    bare = [name for name, value in names.items() if not inspect.getdoc(value)]
    assert bare == []


def test_the_package_needs_no_network_library_until_it_connects():
    program = (
        "import sys, dealer; dealer.DeckEmpty\n"
        "assert not {'websockets', 'asyncio', 'cryptography'} & set(sys.modules)\n"
        "dealer.connect\n"
        "assert 'websockets' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


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
