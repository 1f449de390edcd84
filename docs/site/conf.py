"""How the site is made; ``docs/build_site.py`` runs it."""

from importlib.metadata import version as version_of

project = "quorate"
author = "The quorate developers"
copyright = author
version = release = version_of("quorate")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "api/**", "benchmarks/README.md", "src/quorate/data/bundled/CITATION.md"]
exclude_patterns = ["docs/**/*.py", "docs/**/*.json"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}

# Markdown as the code host reads it.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_digits = False
nb_execution_mode = "force"  # of notebooks alone: a page of Markdown is executed by the tests
nb_execution_raise_on_error = True
nb_execution_timeout = 60
nb_merge_streams = True

autodoc_typehints = "none"  # the docstrings say types, with units and ranges
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Formal guarantees", "Privacy"]

html_theme = "furo"
html_title = f"quorate {version}"
html_copy_source = False
html_show_sourcelink = False
highlight_language = "text"
suppress_warnings = [
    "ref.python",  # an attribute of one name stands in several classes
    "misc.highlighting_failure",  # what a terminal shows is no language
]


def left_out(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator, which its own pages describe."""
    return skip or name.endswith("_request") or name in ("get_metadata_routing", "get_params", "set_params")


def read_types(app, what, name, obj, options, lines):
    """Write types as they are meant: an underscore at the end of a word is a link in reStructuredText."""
    lines[:] = [line.replace("np.bool_", "bool") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", read_types, priority=100)
    app.connect("autodoc-skip-member", left_out)
