"""The versions of the site in one folder.

`versions.json` lists them, newest first; `versions.js` has the same list for pages that were opened
as files, which may load scripts but no JSON. `index.html` leads to the newest one.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

MARK = "objects.inv"
"""A file in every version of the site, by which its folder is recognised."""

_INDEX = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<title>dealer: documentation</title>
<ul>
{links}</ul>
</html>
"""


def write_versions(folder: Path) -> list[str]:
    """List the versions in a folder, and return them, newest first."""
    found = sorted(
        (path.parent.name for path in folder.glob(f"*/{MARK}")), key=_numbers, reverse=True
    )
    text = json.dumps(found)
    (folder / "versions.json").write_text(f"{text}\n", encoding="utf-8")
    (folder / "versions.js").write_text(f"globalThis.dealerVersions = {text};\n", encoding="utf-8")
    links = "".join(
        f'<li><a href="{escape(version)}/index.html">{escape(version)}</a>\n' for version in found
    )
    index = _INDEX.format(newest=escape(found[0]), links=links)
    (folder / "index.html").write_text(index, encoding="utf-8")
    return found


def _numbers(version: str) -> tuple[bool, list[int], str]:
    """For sorting: 0.10.0 is newer than 0.9.0, and a name without numbers older than both."""
    numbers = [int(part) for part in re.findall(r"\d+", version)]
    return bool(re.match(r"v?\d", version)), numbers, version
