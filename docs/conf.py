"""Sphinx's configuration: `sphinx-build -W -b html docs docs/_build/html`."""

import contextlib
import io
import os
import re
import tempfile
import warnings
from datetime import date
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

import eigenfeat

mpl.use("Agg")
# Processes that examples start print no FutureWarning of other libraries.
warnings.filterwarnings("ignore", category=FutureWarning)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

project = "eigenfeat"
author = "The eigenfeat developers"
copyright = f"{date.today().year}, {author}"
release = eigenfeat.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "**sg_execution_times.rst", "*.cast"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "code"  # single backticks in docstrings are names of Python
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say what is taken and returned
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"  # names of classes do not fit beside a page
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_substitutions = {"release": release}
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def returned_figures(block, block_vars, gallery_conf):
    """Save the figures of `eigenfeat.plotting`, which pyplot does not know.

    Blocks of examples name their figure `figure`, or their display `display`. Each figure is saved
    once.
    """
    names = block_vars["example_globals"]
    figure = names.pop("figure", None) or getattr(names.get("display"), "figure_", None)
    known = hasattr(figure, "number") or hasattr(figure, "_in_gallery")
    if not isinstance(figure, Figure) or known:
        return ""
    figure._in_gallery = True
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=100)
    return figure_rst([path], gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "image_scrapers": ("matplotlib", returned_figures),
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": ExplicitOrder(
        [f"gallery/{part}" for part in ("tables", "features", "reduction", "early", "solvers")]
    ),
    "within_subsection_order": FileNameSortKey,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("eigenfeat",),
    "reference_url": {"eigenfeat": None},
    "inspect_global_variables": True,
    "show_memory": False,
    "min_reported_time": 5,
    "matplotlib_animations": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "eigenfeat"
html_static_path = ["_static"]
# .ci/docs downloads MathJax into this folder; without it, pages load MathJax from a public server.
if Path(__file__).with_name("_build").joinpath("static", "mathjax").is_dir():
    html_static_path.append("_build/static")
    mathjax_path = "mathjax/tex-mml-chtml.js"
html_css_files = ["site.css"]
html_show_sourcelink = False
# These pages have no subpages to list in the sidebar.
html_sidebars = {page: [] for page in ("quick_start", "benchmarks")}
html_theme_options = {
    "logo": {"text": "eigenfeat"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}


def skip_routing(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates for metadata routing."""
    generated = name.startswith("set_") and name.endswith("_request")
    return True if generated or name == "get_metadata_routing" else skip


def without_foreign_links(app, what, name, obj, options, lines):
    """Drop the links of inherited docstrings to labels of scikit-learn's own site."""
    lines[:] = [line for line in lines if ":ref:`" not in line or "eigenfeat" in line]


def show_output(app, page, source):
    """Run the Python blocks of a page of the guide, and show below each block what it prints.

    Longer output, such as versions of all libraries, is left out.
    """
    if not page.startswith(("guide/", "quick_start")):
        return
    names = {"__name__": "page"}

    def with_output(block):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block[1], page, "exec"), names)
        lines = printed.getvalue().splitlines()
        shown = "\n".join(["", "```text", *lines, "```", ""]) if 0 < len(lines) <= 20 else ""
        return block[0] + shown

    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(action="ignore"),
    ):
        source[0] = re.sub(r"^```python\n(.*?)^```\n", with_output, source[0], flags=re.M | re.S)


def setup(app):
    app.connect("source-read", show_output)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", without_foreign_links)
