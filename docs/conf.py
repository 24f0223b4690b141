"""How Sphinx makes the site: `make docs`, into `build/docs`. Nothing is fetched from the network.

Pages are MyST Markdown, so that they read well on GitHub too. Those with a `kernelspec` at the head
are executed, and so are the notebooks of `examples/`; the other code blocks are run by
`tests/docs`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import vulcan

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "Vulcan"
author = "The Vulcan developers"
project_copyright = author
release = version = vulcan.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
]
exclude_patterns = ["_*"]
nitpicky = True

# --- Markdown
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# --- Pages and notebooks that are executed
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_number_source_lines = False
KERNEL = """
c = get_config()
c.IPKernelApp.log_level = 40
c.HistoryManager.enabled = False
"""

# --- Reference
add_module_names = False
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
# Types of other packages and of our own rooms, which have no page here.
nitpick_ignore_regex = [
    (r"py:.*", r"(?s)(?!vulcan\.).*"),
    (r"py:.*", r"vulcan\.\w+\..*"),
]

# --- Look
html_theme = "furo"
html_title = "Vulcan"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
templates_path = ["_templates"]
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
linkcheck_timeout = 20
linkcheck_retries = 2


def prepare_kernels() -> None:
    """Let kernels find the example models, without history and chatter."""
    places = [str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    os.environ["IPYTHONDIR"] = str(ROOT / "build" / "docs" / "ipython")
    profile = ROOT / "build" / "docs" / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(KERNEL, encoding="utf-8")


def copy_notebooks() -> None:
    """Copy the notebooks of `examples/` to where Sphinx finds them."""
    folder = HERE / "examples" / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        shutil.copy(notebook, folder)


def read_page(app: Any, name: str, source: list[str]) -> None:
    """List the notebooks there are, and lead links to files at the root to pages that have them."""
    if name == "examples/index":
        notebooks = sorted((HERE / "examples" / "notebooks").glob("*.ipynb"))
        names = "\n".join(f"notebooks/{path.stem}" for path in notebooks)
        source[0] = source[0].replace("notebooks/*", names)
    up = "../" * name.count("/")
    for page in ("contributing", "changelog", "security"):
        source[0] = source[0].replace(f"]({up}../{page.upper()}.md", f"]({up}{page}.md")


def setup(app: Any) -> None:
    """Prepare the build."""
    prepare_kernels()
    copy_notebooks()
    app.connect("source-read", read_page)
