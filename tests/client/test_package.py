"""Exported names of the client, and the example in its documentation."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import subprocess
import sys
import textwrap

import pytest

import dealer
import dealer.client
import dealer.errors
from dealer.proof.verify import Swap


@pytest.mark.parametrize("old", sorted(dealer.client.DEPRECATED))
def test_old_names_are_deprecated_aliases(old):
    with pytest.warns(DeprecationWarning, match=dealer.client.DEPRECATED[old]):
        alias = getattr(dealer.client, old)
    assert alias is getattr(dealer.client, dealer.client.DEPRECATED[old])


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = dealer.client.Nonsense


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


async def test_commands_have_their_old_names(connect):
    async with connect(name="Ada") as house:
        ada = await house.join(await house.open(seats=2))
        await ada.round_open()
        await ada.shuffle()
        await ada.deal(3)
        with pytest.warns(DeprecationWarning, match="RemoteTable.call"):
            await ada.change("hand.play", cards=ada.hand[:1])
        with pytest.warns(DeprecationWarning, match="RemoteTable.move"):
            await ada.pile_move("table", to="side", whole=True)
        assert len(ada.piles["side"]) == 1
        with pytest.warns(DeprecationWarning, match="RemoteTable.return_cards"):
            await ada.return_(ada.hand[:1], where="bottom")
        with pytest.warns(DeprecationWarning, match="RemoteTable.return_cards"):
            await ada.hand_return(ada.hand[0])
        assert (ada.hand, ada.deck_count) == ([], 51)
        with pytest.warns(DeprecationWarning, match="private"):
            assert house.connection is house._connection


def test_a_swap_has_the_old_name_of_its_shuffle():
    swap = Swap(1, 1, 2, 0, 51, 3, (3,), ("As", "2s"))
    with pytest.warns(DeprecationWarning, match="shuffle_index"):
        assert swap.k == swap.shuffle_index == 2


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
