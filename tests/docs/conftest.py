"""A server as the documents start it, for the examples of one file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.docs.tutorial import Reader

SERVE = """
```sh
# Terminal 9
dealer serve
```
```text
The server is running at http://127.0.0.1:8080/
```
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reader]:
    """A reader in whose folder `dealer serve` runs."""
    async with Reader(tmp_path_factory.mktemp("reader")) as reader:
        await reader.follow(SERVE)
        yield reader
