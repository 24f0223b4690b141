"""Write formulas as MathML, which browsers render by themselves: no script, no network."""

from __future__ import annotations

import re
from typing import Any, Final

from docutils import nodes
from latex2mathml.converter import convert

UPRIGHT: Final = re.compile(r"<mi>(&#x000(?:4|5).;|&#x003(?:9|A).;)</mi>")
"""Single letters of `\\mathrm`, and Greek capitals: browsers would slant them, unlike TeX."""


def render(formula: str, display: str) -> str:
    """Return a formula in MathML."""
    return UPRIGHT.sub(r'<mi mathvariant="normal">\1</mi>', convert(formula, display=display))


def write_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(render(node.astext(), "inline"))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula that has lines of its own."""
    formula = render(node.astext(), "block")
    writer.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
