"""The list of the image's packages in the format CycloneDX, by the command in RELEASING.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.distributions.tools import ROOT, python_with, run

pytestmark = pytest.mark.slow


def test_the_documented_command_lists_every_package_of_the_image(tmp_path: Path) -> None:
    document = (ROOT / ".github/RELEASING.md").read_text("utf-8")
    (command,) = re.findall(r"^cyclonedx-py (requirements [^\n]+)$", document, re.MULTILINE)
    program = python_with("cyclonedx_py", "cyclonedx-bom")
    file = tmp_path / "sbom.json"
    run([*program, *shlex.split(command.replace("sbom.json", str(file)))])
    sbom = json.loads(file.read_bytes())
    assert "serialNumber" not in sbom, "every run would give another file"
    assert "timestamp" not in sbom["metadata"]
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    locked = (ROOT / ".compose/requirements.txt").read_text("utf-8")
    packages = set(re.findall(r"^([\w.-]+)==([\w.]+)", locked, re.MULTILINE))
    assert {(each["name"], each["version"]) for each in sbom["components"]} == packages
    assert all(each["externalReferences"][0]["hashes"] for each in sbom["components"])
    assert sbom["metadata"]["component"]["name"] == "dealer-server"
