"""The arguments and options of all commands, how their texts are read, and what they open.

A command is a function. Types and defaults of its options are those of its parameters; `OPTIONS`
has the rest by the names of the parameters. The options that limit and tune a search are derived
from the solvers (`vulcan.cli.search`): a command that has a parameter `search` gets those that were
given, by their names.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vulcan.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from vulcan.constraints import Constraint
    from vulcan.formats.registry import OpenedModel
    from vulcan.policy.policy import AnyPolicy
    from vulcan.problem import Problem

PROBLEM: Final = "Model and bound"
RANGE: Final = "Range"
SEARCH: Final = "Search"
LIMITS: Final = "Limits"
TUNING: Final = "Options of solvers"
WORK: Final = "Workers"
FILES: Final = "Files"
ANSWER: Final = "Answer"
SECTIONS: Final = (PROBLEM, RANGE, SEARCH, LIMITS, TUNING, WORK, FILES, ANSWER)  # of a help


def option(section: str, usage: str, text: str, **rest: Any) -> Any:
    """Return an option: its section in the help, its spellings with its value, and its help."""
    flags = [word for word in usage.split() if word.startswith("-")]
    metavar = " ".join(word for word in usage.split() if not word.startswith("-")) or None
    return typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=section, **rest)


def complete_model(incomplete: str) -> list[str]:
    """Return the built-in names that begin like this; without one, shells complete files."""
    from vulcan.domains import DOMAINS

    return [name for name in DOMAINS if name.startswith(incomplete)]


MODELS: Final = (
    "A built-in model such as bandit, or module:Class, or path/to/file.py:Class, or a file such as "
    "mission.toml, model.json, model.npz, maps.txt:7, model.prism, domain.rddl, or "
    "gymnasium:FrozenLake-v1, or rddl:Navigation_MDP_ippc2011/1."
)

REPLACED: Final = "An existing file is replaced."

RECORDED_BOUND: Final = option(
    PROBLEM,
    "--bound EXPR",
    "The risk bound to judge by.",
    show_default="that of the mission file, or else the one that the policy was made for",
)

OPTIONS: Final[dict[str, Any]] = {
    "model": typer.Argument(metavar="MODEL", help=MODELS, autocompletion=complete_model),
    "show.model": typer.Argument(
        metavar="MODEL",
        help=f"The model that the policy was made for. {MODELS}",
        autocompletion=complete_model,
    ),
    "simulate.model": typer.Argument(
        metavar="[MODEL]",
        help="Where to play: the model of the policy, or another one, as in `vulcan solve`; by "
        "default the outcomes that the policy itself expects.",
    ),
    "plan": typer.Argument(
        metavar="PLAN", help="A policy file, written by `vulcan solve --output`."
    ),
    "settings": option(
        PROBLEM,
        "--set NAME=VALUE",
        "A parameter of the model: a Python literal, or else a string. Overrides a mission file. "
        "May be repeated. --horizon N is short for --set horizon=N.",
    ),
    "bound": option(
        PROBLEM,
        "--bound EXPR",
        "Acceptable probability of failure as a function of the expected reward x: "
        '0.01, "0.002*x", "piecewise((0, 0), (3, 0.02))".',
        show_default="that of the mission file; else required, unless there is a --constraint",
    ),
    "frontier.bound": option(
        PROBLEM,
        "--bound EXPR",
        "Plan for multiples of this risk bound, instead of constant bounds.",
        show_default="that of the mission file, unless there are --levels",
    ),
    "certify.bound": RECORDED_BOUND,
    "explain.bound": RECORDED_BOUND,
    "explore.bound": RECORDED_BOUND,
    "constraints": option(
        PROBLEM,
        "--constraint TEXT",
        'A further limit: "fuel <= 5" on the expected total of a cost, "risk(collision) <= '
        '0.002*x" on an event or a kind of failure, "risk ahead <= 0.05". May be repeated, and '
        "replaces that of a mission file on the same quantity.",
    ),
    "levels": option(RANGE, "--levels A,B,...", "Constant bounds to plan for."),
    "scales": option(RANGE, "--scales A,B,...", "Multiples of --bound to plan for."),
    "points": option(
        RANGE,
        "--points N",
        "Largest number of bounds, placed where the frontier bends.",
        show_default="21",
    ),
    "curves": option(
        RANGE,
        "--curves TEXT",
        'A frontier for each value of a further constraint: "fuel <= 4, 5, 6".',
    ),
    "solvers": option(
        SEARCH,
        "--solvers NAME,...",
        "The solvers to compare, as in vulcan solve; paper-vulcan:2 sets --exploration 2.",
        show_default="all but automatic",
    ),
    "exact": option(SEARCH, "--exact", "Compute with fractions: slow, without any rounding."),
    "environment": option(
        SEARCH,
        "--environment",
        "Play in Gymnasium's own environment (MODEL is gymnasium:NAME), step by step.",
    ),
    "episodes": option(SEARCH, "--episodes N", "Number of episodes.", min=1),
    "seed": option(
        SEARCH,
        "--seed N",
        "Seed of the random numbers: the same seed gives the same answer on any number of cores.",
        min=0,
    ),
    "seconds_per_step": option(
        SEARCH,
        "--seconds-per-step SECONDS",
        "Planning time before each action.",
        min=0.01,
        show_default="0.2",
    ),
    "samples_per_step": option(
        SEARCH,
        "--samples-per-step N",
        "Samples before each action, instead of seconds: the same observations then give the same "
        "actions.",
        min=1,
    ),
    "simulate": option(SEARCH, "--simulate", "Draw the outcomes from the model."),
    "solve.simulate": option(
        SEARCH,
        "--simulate",
        "MODEL is only a simulator: gymnasium:NAME or the class of a generative model. Learn "
        "policies, and certify them on fresh episodes, at a confidence (exit code 5).",
    ),
    "solve.episodes": option(
        SEARCH,
        "--episodes N",
        "With --simulate, this many episodes for each certificate.",
        min=1,
        show_default="until decided, at most 100,000",
    ),
    "confidence": option(SEARCH, "--confidence P", "With --simulate, the confidence."),
    "what_if": option(
        SEARCH,
        "--what-if SECONDS",
        "Time limit of each search for a plan with half and 0.9 times the allowed risk; 0 for no "
        "such plans.",
        min=0.0,
    ),
    "most_states": option(
        LIMITS, "--most-states N", "Stop after this many distinct states.", min=1
    ),
    "parallel": option(
        WORK,
        "--parallel N|KIND[:N][@CLUSTER]",
        "Number of workers, or their kind: threads, processes, or ray, which starts a Ray cluster "
        "on this machine, or works on one: 4, processes:4, ray:8, ray@auto, ray:8@10.0.0.1:6379.",
        show_default="1",
    ),
    "device": option(
        WORK,
        "--device cpu|cuda",
        "Where large dynamic programs are computed: cuda is a GPU of NVIDIA.",
    ),
    "solve.file": option(
        FILES,
        "--output -o FILE",
        "Write the policy to a file, if it is safe; with --simulate, the certificate as a page, "
        f".html. {REPLACED}",
    ),
    "incomplete": option(
        FILES,
        "--incomplete",
        "Also write a policy that is not complete, if it is within the bound up to where it has no "
        "plan.",
    ),
    "show.file": option(FILES, "--output -o FILE", f"Write the table to a .csv file. {REPLACED}"),
    "explore.file": option(FILES, "--output -o FILE", f"Write the page to a file. {REPLACED}"),
    "plot": option(
        FILES, "--plot FILE", f"Draw a figure into a file: .png, .svg or .pdf. {REPLACED}"
    ),
    "checkpoint": option(
        FILES,
        "--checkpoint FILE",
        "Write the search to a file regularly, to resume it later; for solvers that sample.",
    ),
    "resume": option(FILES, "--resume", "Resume from the checkpoint file, if it exists."),
    "overwrite": option(FILES, "--overwrite", "Replace the checkpoint file, if it exists."),
    "depth": option(
        ANSWER,
        "--depth N",
        "Show the policy this many decisions deep; 0 for none.",
        min=0,
        max=100,
        show_default="3",
    ),
    "table": option(
        ANSWER,
        "--table",
        "Show a row for each decision: step, state (or history), action, how likely it is, the "
        "risk taken there, and the risk and the reward ahead.",
    ),
    "sort": option(
        ANSWER,
        "--sort COLUMN",
        "The order of the rows: reach, risk, risk_ahead, reward_ahead, action, ... Numbers begin "
        "with the largest, steps and words with the first.",
        show_default="step; with --top, risk",
    ),
    "top": option(
        ANSWER,
        "--top N",
        "Only the first N rows of that order.",
        min=1,
        show_default="60 on the screen, all in a file",
    ),
    "rows": option(ANSWER, "--rows N", "Number of rows of each table.", min=1),
    "as_json": option(ANSWER, "--json", "Print one JSON document, numbers at full precision."),
    "progress": option(
        ANSWER,
        "--progress/--no-progress",
        "Show progress, once it takes longer than a moment.",
        show_default="on a terminal",
    ),
}
"""By the names of parameters; `solve.file` is that of one command alone."""


def declare(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer reads it, with all its options."""
    own = dict(inspect.signature(command, eval_str=True).parameters)
    kinds = {}
    if searches := own.pop("search", None) is not None:
        from vulcan.cli.search import declare_options

        kinds = declare_options(tuning="solver" in own)
    added = [name for name in kinds if name not in own]
    for name in own:
        if name not in kinds:
            known = OPTIONS.get(f"{command.__name__}.{name}") or OPTIONS[name]
            kinds[name] = Annotated[own[name].annotation, known]

    def run(**given: Any) -> None:
        if searches:
            search = {name: given.pop(name) for name in added}
            given["search"] = {name: value for name, value in search.items() if value is not None}
        command(**given)

    run.__name__ = command.__name__
    run.__annotations__ = {name: kinds[name] for name in (*own, *added)}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=own[name].default if name in own else None,
                annotation=kind,
            )
            for name, kind in run.__annotations__.items()
        ]
    )
    return run


def read_parallel(text: str | None) -> int | str | None:
    """Return the value of `--parallel`, as Python takes it."""
    return int(text) if text is not None and text.isdecimal() else text


def read_progress(progress: bool | None) -> bool:
    """Return whether to show progress; by default on a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def spell_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `--horizon N`, the most common setting, as `--set horizon=N`."""
    written: list[str] = []
    for argument in arguments:
        if written and written[-1] == "--horizon":
            written[-1:] = ["--set", f"horizon={argument}"]
        elif argument.startswith("--horizon="):
            written += ["--set", argument.removeprefix("--")]
        else:
            written.append(argument)
    return written


def find_problem(
    text: str,
    settings: Sequence[str] | None,
    bound: str | None,
    constraints: Sequence[str] | None,
) -> Problem:
    """Return the model that a string names, with the given limits, or else its own."""
    from vulcan.formats.registry import open_model
    from vulcan.problem import Problem

    opened = open_model(text, settings or ())
    bound, limits, _ = choose_limits(opened, text, bound, constraints)
    if bound is None and not limits:
        elsewhere = f', or bound = "0.002*x" in {text}' if text.endswith(".toml") else ""
        raise OptionError(f"Missing option '--bound', such as --bound \"0.002*x\"{elsewhere}")
    return Problem(opened.model, bound, constraints=limits)


def choose_limits(
    opened: OpenedModel, text: str, bound: str | None, constraints: Sequence[str] | None
) -> tuple[str | None, list[Constraint], str]:
    """Return the bound and the constraints to plan for or to judge by, and where they are from.

    Those that are given replace the own ones of the opened model on the same quantity.
    """
    from vulcan.constraints import read_constraints

    if letters := {"A", "B"}.intersection(constraints or ()):
        raise OptionError(f"the local constraint of a solver is --local-test {min(letters)}")
    given = read_constraints(constraints or ())
    limited = {constraint.quantity for constraint in given}
    limited |= set() if bound is None else {"risk"}
    own = [c for c in read_constraints(opened.constraints) if c.quantity not in limited]
    own_bound = None if "risk" in limited else opened.bound
    sources = {
        "--bound": bound is not None,
        "--constraint": given,
        f"the bound in {text}": own_bound is not None,
        f"the constraints in {text}": own,
    }
    limits = {constraint.quantity: constraint for constraint in (*given, *own)}
    chosen = own_bound if bound is None else bound
    if chosen is None and "risk" in limits:
        chosen = limits.pop("risk").bound.text
    return chosen, [*limits.values()], " and ".join(name for name, used in sources.items() if used)


def open_plan(
    plan: Path,
    text: str,
    settings: Sequence[str] | None,
    bound: str | None = None,
    constraints: Sequence[str] | None = None,
) -> tuple[AnyPolicy, Problem, str | None]:
    """Return a policy, its model with the limits to judge it by, and where these are from.

    Limits are `--bound` and `--constraint`, or else those of the mission file (named by its path),
    or else the bound that the policy was made for (None). If that can't be written down, every risk
    is allowed, and the source is "".
    """
    from vulcan.bounds.forms import Constant
    from vulcan.bounds.parse import parse
    from vulcan.formats.registry import open_model
    from vulcan.policy.policy import Policy
    from vulcan.problem import Problem

    policy = Policy.load(plan)
    opened = open_model(text, settings or ())
    chosen, limits, source = choose_limits(opened, text, bound, constraints)
    if not source:
        chosen = policy.about.risk_bound
        limits = [*policy.members[0].constraints]
        if chosen is None:
            return policy, Problem(opened.model, Constant(1.0)), ""
    judged = None if chosen is None else parse(chosen)
    return policy, Problem(opened.model, judged, constraints=limits), source or None


def keep_off_stdout() -> AbstractContextManager[Any]:
    """Redirect what a model prints to standard error; standard output is for the answer."""
    return redirect_stdout(sys.stderr)
