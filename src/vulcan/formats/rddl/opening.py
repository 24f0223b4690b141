"""RDDL problems by their files, and those of rddlrepository by their names."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.formats.rddl.model import RDDLModel
from vulcan.formats.rddl.reading import Source, load_library
from vulcan.formats.registry import Maker
from vulcan.parameters import suggest

__all__ = ["FORMS", "find_maker", "from_rddl"]

FORMS: Final = {
    "path/to/domain.rddl": "an RDDL problem, with --set instance=path/to/instance.rddl",
    "rddl:DOMAIN/INSTANCE": "one of rddlrepository, such as rddl:Navigation_MDP_ippc2011/1",
}


def from_rddl(
    domain: str,
    instance: str | int | None = None,
    *,
    failure: str | None = None,
    horizon: int | None = None,
    discount: float | None = None,
) -> RDDLModel:
    """Return an RDDL problem as a model with exact outcomes.

    Parameters
    ----------
    domain
        A file, or the name of a problem in rddlrepository.
    instance
        A file, or the number of an instance in rddlrepository; None if the file of the domain has
        the instance as well.
    failure
        What ends the mission in failure, beside a violated state invariant: the name of a state
        fluent (when it holds for any objects), or a condition in RDDL on state fluents, such as
        `"~alive"`, `"running(c1) ^ hot"` or `"exists_{?c : computer} [~running(?c)]"`.
    horizon, discount
        Instead of those of the instance.

    Returns
    -------
    RDDLModel
        Its states are tuples of the values of the state fluents, its actions strings.

    Raises
    ------
    OptionError
        If a file can't be read or has a mistake, or the problem is not finite: its distributions
        must be, and its actions; the message says where, and what is allowed.
    """
    place = str(domain)
    if place.endswith(".rddl"):
        source = Source(place, None if instance is None else str(instance))
    else:
        source = _find_stored(place, None if instance is None else str(instance))
    return RDDLModel(source, None if failure is None else str(failure), horizon, discount)


def find_maker(text: str) -> Maker:
    """Return what makes the problem that a string names."""
    if not text.startswith("rddl:"):
        return Maker(text, partial(from_rddl, text))
    domain, _, instance = text.removeprefix("rddl:").partition("/")
    _find_stored(domain, instance or None)
    return Maker(text, partial(from_rddl, domain, instance))


def _find_stored(domain: str, instance: str | None) -> Source:
    """Return the files of a problem of rddlrepository."""
    load_library("rddlrepository")
    from rddlrepository.core.manager import RDDLRepoManager

    known: dict[str, Any] = RDDLRepoManager().archiver_dict
    if domain not in known:
        close = [name for name in known if domain and domain.lower() in name.lower()] or known
        raise OptionError(
            f"rddlrepository has no problem {domain!r}{suggest(domain, known)}\n"
            f"it has {', '.join(sorted(close))}"
        )
    problem = RDDLRepoManager().get_problem(domain)
    numbers = problem.list_instances()
    if instance not in numbers:
        asked = "needs an instance" if instance is None else f"has no instance {instance!r}"
        raise OptionError(f"{domain} {asked}: rddl:{domain}/N with N one of {', '.join(numbers)}")
    return Source(problem.get_domain(), problem.get_instance(instance))
