"""How the site is built: ``make docs``. Nothing is fetched, here or by a reader's browser."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import reference  # noqa: E402 - found by the path above
from biglp import __version__  # noqa: E402

reference.write(HERE / "api")

project = "biglp"
author = "The biglp developers"
copyright = "The biglp developers"
release = version = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "units",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "results", "gallery/*.ipynb"]
suppress_warnings = ["config.cache"]  # the order of examples is a function, which is not stored

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
html_math_renderer = "mathml"

# Reference: one page a public name, and other projects' names from small files beside this one.
autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"  # numpydoc's types say more: shapes, and values that are allowed
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = {
    "of", "or", "shape", "optional", "n_rows", "n_classes", "n_features", "n_features_in_",
    "default", "type", "that", "prints", "as", "a", "few", "lines", "CSR", "matrix", "data",
    "frame", "path", "paths", "query", "anything", "holds", "rows",
    "k", "q", "n", "m", "side", "uint8", "URI", "labels", "n_targets", "Engine", "None",
    "sequence", "iterable", "mapping",
}  # fmt: skip
numpydoc_xref_aliases = {
    "None": "None",  # numpydoc's own link leads to a name that our inventory lacks
    "ndarray": "numpy.ndarray",
    "array": "numpy.ndarray",
    "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator",
    "DataFrame": "pandas.DataFrame",
    "Path": "pathlib.Path",
    "sequence": "sequence",
    "iterable": "iterable",
    "mapping": "mapping",
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
    "dict": "dict",
    "list": "list",
    "tuple": "tuple",
}
PROJECTS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
}
intersphinx_mapping = {
    name: (address, str(HERE / "inventories" / f"{name}.txt")) for name, address in PROJECTS.items()
}

# Gallery
warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "ignore_pattern": r"customers\.py",  # makes a file for the command line, and draws nothing
    "within_subsection_order": "gallery_order.in_order",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 0,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("biglp",),
    "reference_url": {"biglp": None},
    "matplotlib_animations": False,
    "thumbnail_size": (480, 336),
}
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 130)]

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "biglp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "biglp", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
html_sidebars = {"index": []}
