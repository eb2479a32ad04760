"""Sphinx's settings of the documentation site: the documents stay where they are in the clone.

`sphinx-build -c dealer/docs . FOLDER` makes the site, and `python -m dealer.docs FOLDER` a version
of it in a folder with others.
"""

from dealer.version import __version__

project = "dealer"
version = release = __version__
extensions = ["myst_parser"]
root_doc = "dealer/docs/index"
include_patterns = ["README.md", ".client/*.md", ".github/*.md", "dealer/**.md", "tests/**.md"]
exclude_patterns = [".git", ".venv", "build", "dist", "site", "**/__pycache__"]
myst_heading_anchors = 6
# Excerpts of JSON with an ellipsis, and CSV, are shown without colours.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"
smartquotes = False  # would change the hyphens of flags
pygments_style = "friendly"  # the theme's own one switches the log of every library on

html_theme = "furo"
templates_path = ["theme"]
html_static_path = ["theme/site.css", "theme/site.js"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_additional_pages = {"index": "first.html"}
html_copy_source = False
html_show_copyright = False
html_use_index = False
