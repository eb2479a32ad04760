"""Every example of the documents is run by a test, or is listed with the reason why not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from dealer.gateway.wire.results import FeedEvent
from tests.docs.examples import LANGUAGES, NOT_RUN, RUN
from tests.docs.tutorial import Block, blocks
from tests.harness.server_process import ROOT
from tests.test_documents import DOCUMENTS, name

NAMES = list(map(name, DOCUMENTS))


def examples(document: str) -> list[Block]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [one for one in blocks(text) if one.language in LANGUAGES]


def entry(document: str, block: Block) -> tuple[str, str] | None:
    """The document and the key of the first entry that fits an example."""
    keys = [*RUN.get(document, ()), *NOT_RUN.get(document, ())]
    text = f"{block.language} {block.text}"
    return next(((document, key) for key in keys if text.startswith(key)), None)


@pytest.mark.parametrize("document", NAMES)
def test_every_example_is_run_or_listed(document: str) -> None:
    for block in examples(document):
        first = block.text.partition("\n")[0]
        assert entry(document, block), f"no test runs {first!r}: name one in tests/docs/examples.py"


def test_every_entry_has_an_example() -> None:
    used = {entry(document, one) for document in NAMES for one in examples(document)}
    for entries in (RUN, NOT_RUN):
        for document, keys in entries.items():
            assert {(document, key) for key in keys} <= used, document


NAMED = sorted({(document, test) for document, keys in RUN.items() for test in keys.values()})


@pytest.mark.parametrize(("document", "test"), NAMED)
def test_every_test_that_is_named_reads_its_document(document: str, test: str) -> None:
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE)
    file = Path(document)
    assert {file.name, file.parent.name} & set(re.findall(r"[\w.-]+", text))


def test_few_are_not_run() -> None:
    assert sum(map(len, NOT_RUN.values())) <= 10


def test_objects_of_the_feed() -> None:
    """The two objects of feed/README.md have members of the type that is sent."""
    whole, skipped = (
        one.text for one in examples("dealer/feed/README.md") if one.language == "json"
    )
    for one in (whole, skipped):
        assert set(json.loads(one)) <= set(FeedEvent.__struct_fields__)
        assert msgspec.json.decode(one, type=FeedEvent).position
