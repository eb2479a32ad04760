"""The documentation site: `conf` has Sphinx's settings, `reference` what the program declares.

`python -m dealer.docs FOLDER` makes it in a clone, with the extra `docs`. The room is not in the
wheel, whose users have no sources of the documents.
"""
