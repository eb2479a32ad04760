"""The table page's QR codes, as another library reads them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.harness.programs import output_of
from tests.harness.qr_codes import read_modules
from tests.web.js_verifier import FILE, node

QR = (FILE.parent / "table" / "qr.js").as_uri()
QUIET_ZONE = 4
LINK = "https://cards.example.org/tables/" + "0f" * 16 + "#seat=seat.1.4.AbC-_xyz"


def run(expression: str) -> str:
    program = f"import {{ qrModules }} from {json.dumps(QR)}; console.log({expression});"
    return output_of(node(), "--input-type=module", "--eval", program)


@pytest.mark.slow
def test_a_code_is_read_as_its_text() -> None:
    """In every version: the lengths are the largest of each, and one more byte."""
    lengths = [14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504]
    lengths += [560, 624, 666, 711, 779, 857, 911, 997, 1059, 1125, 1190, 1264, 1370, 1452]
    lengths += [1538, 1628, 1722, 1809, 1911, 1989, 2099, 2213]
    texts = [LINK, "Zoë ♠ 🂡"] + [("ab7/" * 600)[: n + more] for n in lengths for more in (0, 1)]
    texts.append("z" * 2331)
    drawn = json.loads(run(f"JSON.stringify({json.dumps(texts)}.map(qrModules))"))
    sizes = {len(modules) for modules in drawn}
    assert sizes == {17 + 4 * version for version in range(1, 41)}
    for text, modules in zip(texts, drawn, strict=True):
        assert read_modules(np.pad(np.array(modules), QUIET_ZONE).tolist()) == text


def test_a_text_that_is_too_long_is_refused() -> None:
    caught = (
        "(() => { try { qrModules('z'.repeat(2332)); } catch (error) { return error.name; } })()"
    )
    assert run(caught).strip() == "RangeError"


@pytest.mark.parametrize("length", [1, 30, 100])
def test_the_patterns_of_a_code_do_not_depend_on_its_text(length: int) -> None:
    one, other = (
        np.array(json.loads(run(f"JSON.stringify(qrModules({json.dumps(letter * length)}))")))
        for letter in "xy"
    )
    assert (one[:7, :7] == other[:7, :7]).all()
    assert (one[6, 8:-8] == (np.arange(8, len(one) - 8) % 2 == 0)).all()
