# SPDX-License-Identifier: Apache-2.0
"""The documentation site; ./scripts/docs.sh builds it."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
project = "polyscan"
author = "the polyscan developers"
copyright = "the polyscan developers, Apache License 2.0"
release = version = re.search(r"project\(polyscan VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]

sys.path.insert(0, str(root / "docs"))
extensions = ["myst_parser", "api_pages"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# The source folder is the whole tree (scripts/docs.sh), so that links to README.md and to sources work as they stand.
root_doc = "docs/index"
include_patterns = ["docs/**", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "models/README.md"]
exclude_patterns = ["build", ".venv", ".git", "docs/snippets", "docs/diagrams"]
nitpicky = False
# Pages are Markdown that reads well in a repository, too: not every page begins with a first-level heading of its own.
suppress_warnings = ["myst.header"]

highlight_language = "cpp"
pygments_style = "friendly"

html_theme = "furo"
html_title = f"polyscan {release}"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False}


def setup(app):
    """The site alone: scripts/docs.sh makes pictures of the records of this tree."""

    def link(app, name, source):
        if name == "docs/benchmarks":
            source[0] += '\n```{raw} html\n<p>The records of this tree <a href="../report/index.html">as a report</a>.</p>\n```\n'

    app.connect("source-read", link)
