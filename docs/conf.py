"""The documentation site. Schema, configuration and notebooks are taken from where they are defined."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator as HTMLTranslator

from pipeline import schema

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GENERATED = HERE / "_generated"

project = "spheresweep"
author = "The spheresweep developers"
copyright = "2026, the spheresweep developers"
version = release = installed_version("spheresweep")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "_generated/*.inc.md"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are kept as executed; a test executes them again
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "spheresweep"
html_static_path = ["_static"]
html_css_files = ["site.css"]


def definitions(variables: Iterable[schema.Variable]) -> str:
    """Name, dimensions, type and attributes of each, as a definition list."""
    return "\n".join(
        f"`{v.name}` ({', '.join(v.dims)}) {v.dtype}\n: *{v.attrs['long_name']}.* {v.attrs['description']}\n"
        for v in variables
    )


def configuration() -> str:
    """Every file of conf/: the comments in them are the reference. Hydra's own node is left out."""
    whole = (ROOT / "conf" / "config.yaml").read_text().partition("\nhydra:")[0]
    parts = ["### The whole\n", f"```yaml\n{whole}\n```\n"]
    for group in sorted(path for path in (ROOT / "conf").iterdir() if path.is_dir()):
        parts.append(f"### Group `{group.name}`\n")
        for choice in sorted(group.glob("*.yaml")):
            parts.append(f"`{group.name}={choice.stem}`\n\n```yaml\n{choice.read_text()}```\n")
    return "\n".join(parts)


def generate() -> None:
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "variables.inc.md").write_text(definitions(schema.VARIABLES.values()))
    (GENERATED / "coordinates.inc.md").write_text(definitions(schema.COORDINATES.values()))
    (GENERATED / "configuration.inc.md").write_text(configuration())
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, GENERATED / notebook.name)


def before_napoleon(app: Sphinx, what: str, name: str, obj: object, opts: object, lines: list[str]) -> None:
    """Docstrings are written for people at a prompt: `x` is code, a module's opening is set as it stands."""
    if what == "module":
        lines[:] = [".. code-block:: text", "", *(f"    {line}" for line in lines), ""]
    else:
        lines[:] = [re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


def after_napoleon(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon in a property's docstring for its type: undo that."""
    if what == "property":
        lines[:] = (inspect.getdoc(obj) or "").replace("`", "``").splitlines()


def inline_formula(writer: HTMLTranslator, node: nodes.math) -> None:
    """A formula as MathML, which browsers set by themselves: the site needs no network."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(writer: HTMLTranslator, node: nodes.math_block) -> None:
    """The same on a line of its own."""
    writer.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", after_napoleon, priority=900)


generate()
