"""`python -m dealer.docs FOLDER`: make the site of this version in FOLDER/<version>/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dealer.docs.site import BrokenSite, build
from dealer.version import __version__


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dealer.docs", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the versions are; others are kept")
    parser.add_argument("--version", default=__version__, help="name of this version")
    given = parser.parse_args()
    try:
        page = build(given.folder, version=given.version)
    except BrokenSite as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{page}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
