"""The documentation site, which `python -m dealer.docs FOLDER` makes in a clone: see README.md."""
