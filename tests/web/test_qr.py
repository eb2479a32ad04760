"""The library of the table page's QR codes: which file it is, and that its codes can be read."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

from tests.harness.programs import output_of
from tests.harness.qr_codes import read_modules
from tests.web.js_verifier import FILE, node

LIBRARY = FILE.parent / "lean-qr" / "lean-qr.js"
QUIET_ZONE = 4
LINK = "https://cards.example.org/tables/" + "0f" * 16 + "#seat=seat.1.4.AbC-_xyz"


def test_the_file_is_the_one_whose_hash_is_written_down() -> None:
    licence = (LIBRARY.parent / "LICENCE.md").read_text(encoding="utf-8")
    assert re.findall(r"\b[0-9a-f]{64}\b", licence) == [
        hashlib.sha256(LIBRARY.read_bytes()).hexdigest()
    ]
    assert "MIT License" in licence


@pytest.mark.parametrize("text", [LINK, LINK * 6, "Zoë ♠ 🂡"])
def test_a_code_is_read_as_its_text(text: str) -> None:
    """With the level of error correction of the page."""
    program = f"""
      import {{ correction, generate }} from {json.dumps(LIBRARY.as_uri())};
      const code = generate({json.dumps(text)}, {{ minCorrectionLevel: correction.M }});
      const places = Array.from({{ length: code.size }}, (_, index) => index);
      console.log(JSON.stringify(places.map((y) => places.map((x) => code.get(x, y)))));"""
    modules = np.array(json.loads(output_of(node(), "--input-type=module", "--eval", program)))
    assert read_modules(np.pad(modules, QUIET_ZONE).tolist()) == text
