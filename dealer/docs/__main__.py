"""`python -m dealer.docs FOLDER`: make the site of this version in FOLDER/<version>/.

A warning of Sphinx, such as a broken link, is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from html import escape
from pathlib import Path

from sphinx.cmd.build import build_main

from dealer.version import __version__

HERE = Path(__file__).parent
MARK = "objects.inv"  # a file in every version of the site, by which its folder is recognised


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dealer.docs", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the versions are; others are kept")
    parser.add_argument("--version", default=__version__, help="name of this version")
    given = parser.parse_args()
    target = given.folder / given.version
    if not build(HERE.parents[1], target):
        return 1
    list_versions(given.folder)
    sys.stdout.write(f"{target / 'index.html'}\n")
    return 0


def build(sources: Path, target: Path) -> bool:
    """Make one version in `target`, in place of an earlier one; whether nothing was wrong.

    Else the folder is as it was, and Sphinx has said why on standard error. A folder that is no
    version of the site is not replaced (FileExistsError).
    """
    if target.exists() and not (target / MARK).exists():
        raise FileExistsError(f"{target} is not a version of the site")
    with tempfile.TemporaryDirectory() as temporary:
        names = [f"-Dversion={target.name}", f"-Drelease={target.name}"]
        places = ["-c", str(HERE), "-d", f"{temporary}/trees", str(sources), f"{temporary}/site"]
        if build_main(["-q", "-W", *names, *places]):
            return False
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(f"{temporary}/site", target)
    return True


def list_versions(folder: Path) -> None:
    """List the versions in a folder, newest first; `index.html` leads to the newest one.

    `versions.js` is for pages that were opened as files, which may load scripts but no JSON.
    """
    found = sorted((path.parent.name for path in folder.glob(f"*/{MARK}")), key=_age, reverse=True)
    listed = json.dumps(found)
    links = [f'<li><a href="{escape(name)}/index.html">{escape(name)}</a>\n' for name in found]
    first = (HERE / "theme" / "first.html").read_text("utf-8") + f"<ul>\n{''.join(links)}</ul>\n"
    first = first.replace("dealer/docs/index.html", f"{escape(found[0])}/index.html")
    (folder / "versions.json").write_text(f"{listed}\n", "utf-8")
    (folder / "versions.js").write_text(f"globalThis.dealerVersions = {listed};\n", "utf-8")
    (folder / "index.html").write_text(first, "utf-8")


def _age(version: str) -> tuple[bool, list[int], str]:
    """For sorting: 0.10.0 is newer than 0.9.0, and a name without numbers older than both."""
    numbers = [int(part) for part in re.findall(r"\d+", version)]
    return bool(re.match(r"v?\d", version)), numbers, version


if __name__ == "__main__":
    sys.exit(main())
