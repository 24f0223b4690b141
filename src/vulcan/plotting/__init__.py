"""Figures of results: one file each, what is drawn found apart from the drawing.

A figure is drawn into given `Axes`, or into a new figure of its own that no window shows; `save`
writes it to a file. Markers and lines differ in shape, not only in colour, so that a figure can be
read when it is printed in grey. Matplotlib is needed only when something is drawn.

`frontier`, `comparison` and `simulation` draw results; `style` and `labels` are what all figures
share. A new figure is a file, and a line in `__init__.pyi`. Exploration missions are drawn beside
their domain (`vulcan.domains.exploration.drawing`). May import: execution and everything below it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
