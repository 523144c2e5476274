"""Settings of the documentation site; `build.py` prepares the pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Calibrant"
author = "The Calibrant authors"
extensions = ["myst_parser", "mathml"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "Calibrant"
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses to files
html_show_sphinx = False
html_show_copyright = False
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["calibrant.css"]
