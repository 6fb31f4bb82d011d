"""Settings of the manual: ``make docs`` builds it, and a warning is an error."""

from allotment import __version__

project = "allotment"
author = "The allotment developers"
copyright = "The allotment developers"  # noqa: A001 - Sphinx's name
version = release = __version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",  # the API reference comes from the docstrings
    "sphinx.ext.napoleon",  # ``Args:``, ``Returns:`` and ``Raises:`` in them
    "sphinx_click",  # the command line reference comes from click's help
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"allotment {release}"
html_show_sourcelink = False
# `--limit` keeps its two dashes.
smartquotes = False

add_module_names = False
# Names of other libraries in annotations have no page here to link to, so that `-n` would complain of each.
nitpicky = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# A default value as it is written in the source, not as its ``repr``.
autodoc_preserve_defaults = True
# MPI need not be installed to read about it.
autodoc_mock_imports = ["mpi4py"]
exclude_patterns = ["_build"]
# `bytes` in an annotation is the type, and no attribute of that name.
suppress_warnings = ["ref.python"]
