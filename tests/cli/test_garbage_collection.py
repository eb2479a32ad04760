"""Full garbage collections skip survivors until their number has doubled."""

from __future__ import annotations

import gc
import sys

import pytest

from dealer.cli.process import NEVER, STARTING, FullCollections, few_collections
from tests.harness.programs import output_of

pytestmark = pytest.mark.slow

COLLECTIONS = """
import gc, weakref
from dealer.cli.process import NEVER, FullCollections
import dealer.gateway, dealer.service.build

class Node:
    pass

def cycle():
    node = Node()
    node.self = node
    return node, weakref.ref(node)

gc.collect()
before = len(gc.get_objects())
node, of_the_start = cycle()
full = FullCollections()
print(len(gc.get_objects()) < before / 50, gc.get_threshold()[2] == NEVER)

node, dropped_at_once = cycle()
del node
full.collect()
print(dropped_at_once() is None, of_the_start() is not None)

node, frozen = cycle()
full.collect()
del node
full.collect()
print(frozen() is not None)

more = [[] for _ in range(full.frozen + 1)]
full.collect()
full.collect()
print(frozen() is None, full.frozen > len(more))
"""

OFTEN = """
import asyncio, gc, weakref
from dealer.cli import process as module

module.CHECK = 0.001
module.MIDDLE_COLLECTIONS = 2
full = module.FullCollections()
counted = []
gc.get_freeze_count = lambda: counted.append(1) or 0

class Node:
    pass

async def main():
    task = asyncio.create_task(full.run())
    node = Node()
    node.self, dropped = node, weakref.ref(node)
    gc.collect(1)
    del node
    kept = []
    while dropped() is not None:
        kept.append([[] for _ in range(20_000)])
        await asyncio.sleep(0.001)
    task.cancel()

asyncio.run(asyncio.wait_for(main(), 20))
print(counted)
"""


def test_new_cycles_are_collected_and_frozen_ones_after_doubling() -> None:
    assert output_of(sys.executable, "-c", COLLECTIONS).split() == ["True"] * 7


def test_after_many_allocations_what_is_new_is_collected_without_a_count() -> None:
    assert output_of(sys.executable, "-c", OFTEN).split() == ["[]"]


def test_a_command_collects_seldom_until_a_server_takes_over() -> None:
    usual = gc.get_threshold()
    try:
        with few_collections():
            assert gc.get_threshold() == (STARTING, *usual[1:])
            FullCollections()
            assert gc.get_threshold() == (*usual[:2], NEVER)
        assert gc.get_threshold() == usual
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
