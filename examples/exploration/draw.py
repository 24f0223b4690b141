"""Draw the policy of an exploration mission on its map.

    vulcan solve exploration --bound "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)" -o plan.vulcan
    python examples/exploration/draw.py plan.vulcan exploration --outcomes six.png
    python examples/exploration/draw.py plan.vulcan mission.toml --visits visits.pdf --risk risk.pdf

Everything is computed from all outcomes of the policy; none is sampled. Existing files are
replaced.
"""

import argparse
import sys
from pathlib import Path

import drawing

import vulcan
from vulcan.errors import OptionError, VulcanError
from vulcan.formats import open_model
from vulcan.plotting import check_figure_file, save
from vulcan.runtime.files import find_target

FIGURES = {
    "outcomes": "the six most telling outcomes",
    "visits": "the probability that each cell is visited",
    "risk": "risk against reward over all outcomes, with the bound",
    "mission": "one outcome, with reward and risk so far",
    "animation": "one outcome as a .gif",
}


def read_arguments() -> argparse.Namespace:
    """Return the arguments; files that can't be written are errors before any work."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("plan", metavar="PLAN", help="policy file")
    parser.add_argument("model", metavar="MODEL", help="exploration, or a mission file (.toml)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    for name, text in FIGURES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"draw {text}")
    parser.add_argument(
        "--bound",
        metavar="EXPR",
        help="risk bound of --risk (default: that of the mission file, or else of the policy)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="draw the outcome of --mission and --animation at random, among all that are safe "
        "(default: the first of the six)",
    )
    arguments = parser.parse_args()
    arguments.files = {
        name: getattr(arguments, name) for name in FIGURES if getattr(arguments, name) is not None
    }
    return arguments


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raise an error for options and files that can't be used."""
    files = arguments.files
    if not files:
        options = ", ".join(f"--{name}" for name in FIGURES)
        raise OptionError(f"there is nothing to draw: give at least one of {options}")
    if arguments.bound is not None and "risk" not in files:
        raise OptionError("--bound is the curve of --risk, which is not given")
    if arguments.seed is not None and not {"mission", "animation"} & set(files):
        raise OptionError("--seed is for --mission and --animation; neither is given")
    if len({path.resolve() for path in files.values()}) < len(files):
        raise OptionError("two of the figures have the same file")
    for name, path in files.items():
        if name == "animation":
            drawing.check_animation_file(path)
        else:
            check_figure_file(path)
        find_target(path)


def draw(arguments: argparse.Namespace) -> None:
    """Draw and write all files, and print what they show."""
    files = arguments.files
    policy = vulcan.Policy.load(arguments.plan)
    model, own_bound = open_model(arguments.model, arguments.settings)
    bound = next((b for b in (arguments.bound, own_bound, policy.about.risk_bound) if b), None)
    curve = None if bound is None else vulcan.parse(bound)
    journeys = drawing.follow_policy(policy, model)
    if set(files) != {"visits"}:
        journeys.require_some()
    print(
        f"{len(journeys):,} safe outcomes, reward {journeys.reward:.6f}, risk {journeys.risk:.6f}"
    )
    if not policy.complete:
        print("the policy is incomplete: some histories are not planned")
    if "outcomes" in files:
        save(drawing.plot_outcomes(journeys), files["outcomes"])
    if "visits" in files:
        save(drawing.plot_visits(journeys), files["visits"])
    if "risk" in files:
        save(drawing.plot_risk_reward(journeys, curve), files["risk"])
    if {"mission", "animation"} & set(files):
        if arguments.seed is None:
            one = drawing.choose_outcomes(journeys)[0]
        else:
            one = drawing.describe_outcome(journeys, journeys.draw(arguments.seed))
        print(f"one outcome: {one.words}; {one.numbers}")
        if "mission" in files:
            save(drawing.plot_mission(one), files["mission"])
        if "animation" in files:
            drawing.animate_mission(one, files["animation"])
    for path in files.values():
        print(f"saved {path}")


if __name__ == "__main__":
    try:
        given = read_arguments()
        check_arguments(given)
        draw(given)
    except (VulcanError, OSError) as error:
        print(f"draw.py: {error}", file=sys.stderr)
        sys.exit(2)
