"""Figures of results, computed apart from the drawing.

A figure is drawn into given `Axes`, or into a new figure of its own that no window shows; `save`
writes it to a file. Markers and lines differ in shape, not only in colour, so that a figure can be
read when it is printed in grey. Matplotlib is needed only when something is drawn.

`figures` draws frontiers, comparisons and simulations; `style` is what all figures share. A new
figure also needs a line in `__init__.pyi`.
May import: execution and everything below it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
