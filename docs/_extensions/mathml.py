"""Write formulas as MathML, which browsers render by themselves: no script, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def write_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula that has lines of its own."""
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
