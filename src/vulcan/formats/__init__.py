"""Formats: models that are not Python objects yet.

`registry` knows which format a string means, by its prefix or suffix. `python_module` and
`python_file` find a class, `mission` reads exploration missions, `grid` treasure maps, `arrays`
transitions and rewards (as rows, `array_rows`), `table` dictionaries written by hand, `prism` the
files of model checkers, over what Storm read (`prism_source`) and built (`storm_arrays`), `rddl`
problems of the planning competitions, and `gymnasium` environments (what fails there: `failures`),
while `environment` makes one of a model, and `export` writes models for other tools. What goes
wrong in a user's own module or file is told with the place where it happened (`faults`). A new
format is a file, and a line in the registry. May import: planning and everything below it, domains.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
