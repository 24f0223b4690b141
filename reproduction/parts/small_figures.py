"""The paper's small figures, on models of their own: ser, the choice of f, and Cleanup.

*ser.* The numerator of a history's sequence execution risk is the risk of the only policy in a
model where all else is collapsed; and the mean of ser over safe histories is the policy's risk.

*Bad f.* With f = g, an outcome that is unlikely and poor forbids an action; f₁ averages it away.

*Cleanup.* Algorithm 4 of `reproduction.algorithms`, step by step: outcomes of the policy that were
never sampled are tested as if they were ends, and what they refuse is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

from reproduction.algorithms import History, Node, Tree, forward_search
from reproduction.figures.trees import plot_cleanup, plot_collapse, plot_credits
from reproduction.part import Claim, Figure, Record, Section, Table, Task, weigh
from vulcan import Outcome
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.bounds.forms import Constant, Linear
from vulcan.domains import Bandit
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.solvers.local_tests import SequenceConstraint

__all__ = ["SmallFigures"]

FIRST: Final = (0.5, 0.4, 0.1)
SECOND: Final = (0.45, 0.35, 0.2)
"""p1, p2, p3 and p4, p5, p6 of the figure of ser; the last of each is that of failure."""

POOR: Final = ((0.48, 5.0), (0.48, 5.0), (0.02, 0.0))
"""The outcomes of the action that f = g refuses: probability, reward; the rest is failure."""

SLOPE: Final = 0.005
HORIZONS: Final = range(2, 9)
CREDITS: Final = {"f₁": "expected", "g": "received"}
SAMPLES: Final = 12
"""Few enough that some outcomes of a policy are never sampled."""

EXACTLY: Final = 1e-12


class Fork:
    """Two steps of one action each: the left model of the paper's figure of ser, or the right one.

    Only the second outcome of the first action can fail later, as in the figure.
    """

    horizon = 2

    def __init__(self, collapsed: bool) -> None:
        self.collapsed = collapsed

    def initial_state(self) -> str:
        """Return the root."""
        return ""

    def actions(self, state: str) -> list[str]:
        """Return the only action."""
        return ["go"]

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Return what may come, all of it or collapsed."""
        chances = FIRST if state == "" else SECOND
        if state == "1":
            return [Outcome(1.0, 0.0, state + "1")]
        failure = Outcome.failure(chances[2], 0.0)
        if self.collapsed:
            return [Outcome(chances[0] + chances[1], 0.0, state + "2"), failure]
        return [Outcome(p, 0.0, f"{state}{k + 1}") for k, p in enumerate(chances[:2])] + [failure]


class PoorOutcome:
    """One action with an outcome that is unlikely and poor, and one that is safe and pays 1."""

    horizon = 1

    def initial_state(self) -> str:
        """Return the root."""
        return ""

    def actions(self, state: str) -> list[str]:
        """Return the good action and the safe one."""
        return ["good", "safe"]

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Return what may come."""
        if action == "safe":
            return [Outcome(1.0, 1.0, "safe")]
        safe = [Outcome(p, reward, str(k)) for k, (p, reward) in enumerate(POOR)]
        return [*safe, Outcome.failure(1 - sum(p for p, _ in POOR), 0.0)]


class Branches:
    """The tree of the paper's figure of Cleanup: two actions, two outcomes, and so again.

    After "left" and its second outcome both actions are risky, and pay only at the end.
    """

    horizon = 3

    def initial_state(self) -> str:
        """Return the root."""
        return ""

    def actions(self, state: str) -> list[str]:
        """Return two actions, or the one that ends it; after "right" there is only one, too."""
        if len(state) >= 4:
            return ["end"]
        return ["right"] if state.startswith("r") else ["left", "right"]

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Return two safe outcomes, and a failure where it is risky."""
        if action == "end":
            return [Outcome(1.0, 6.0 if state.startswith("l") else 1.0, state + ".")]
        risk = 0.0 if state == "" else 0.02 if state == "l2" else 0.0002
        pays = 0.2 if state == "l1" and action == "left" else 0.1
        safe = [Outcome((1 - risk) / 2, pays, f"{state}{action[0]}{k}") for k in (1, 2)]
        return [*safe, *([Outcome.failure(risk, 0.0)] if risk else [])]


class Watched(Tree):
    """A tree that remembers what it was when Cleanup refused something."""

    pictures: list[dict[str, Any]]

    def clean_up(self, node: Node) -> bool:
        """Clean up as printed, and take a picture of every refusal."""
        passed = super().clean_up(node)
        if not passed and node.visits == 0:
            self.pictures.append(self.take(node.history))
        return passed

    def take(self, refused: History | None = None) -> dict[str, Any]:
        """Return which actions remain and are chosen, and which histories were sampled."""
        picture: dict[str, Any] = {"actions": [], "nodes": []}

        def visit(node: Node) -> None:
            name = _write(node.history)
            picture["nodes"].append([name, node.visits, node.history == refused])
            if len(node.history) == 2:
                return  # the last step is not drawn
            chosen = self.policy.get(node.history)
            for action in node.actions.values():
                picture["actions"].append([name, action.label, action.label == chosen])
                for after in action.nodes:
                    if not after.outcome.fails:
                        visit(after)

        visit(self.root)
        return picture


def _write(history: History) -> str:
    return "".join(f"{label[0]}{k + 1}" for label, k in history)


class SmallFigures:
    """ser, the choice of f, and Cleanup."""

    name = "small-figures"
    title = "The paper's small figures: ser, the choice of f, Cleanup"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each figure, and f = g on the bandit."""
        bandit = ({"what": "bandit", "horizon": horizon} for horizon in HORIZONS)
        return [{"what": "ser"}, {"what": "credit"}, {"what": "cleanup"}, *bandit]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return 0.5

    def run(self, task: Task) -> dict[str, Any]:
        """Measure what one figure shows."""
        if task["what"] == "ser":
            return _measure_ser()
        if task["what"] == "cleanup":
            return _clean_up()
        if task["what"] == "credit":
            return _compare_credits(Problem(PoorOutcome(), Linear(SLOPE)))
        return _compare_credits(Problem(Bandit(task["horizon"]), Linear(0.002)))

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = {r.task["what"]: r.found for r in records if r.task["what"] != "bandit"}
        bandit = {r.task["horizon"]: r.found for r in records if r.task["what"] == "bandit"}
        return Section(
            paper=(
                "Three small figures explain ser as the risk of a collapsed model, why f = g is a "
                "bad choice where an unlikely outcome pays little, and how Cleanup deletes actions "
                "until what was never sampled passes."
            ),
            measured=_describe(found),
            meaning=_judge(found, bandit),
            claims=_list_claims(found, bandit),
            tables=[_tabulate(bandit)] if bandit else [],
            figures=_draw(found),
            numbers={
                **{name: dict(one) for name, one in found.items() if name != "cleanup"},
                **{f"bandit {h}": dict(one) for h, one in bandit.items()},
            },
        )


def _find_risk(model: Any) -> float:
    """Return the risk of the only policy of a model."""
    certificate = solve(Problem(model, Constant(1.0)), ForwardSearch()).certificate
    assert certificate is not None
    return float(certificate.risk)


def _measure_ser() -> dict[str, Any]:
    """Return ser of the marked history, the collapsed model's risk, and both sides of lemma 2."""
    risks = {"1": (FIRST[2],), "2": (FIRST[2], SECOND[2])}  # along safe histories
    chances = {"1": FIRST[0], "2": FIRST[1] * (1 - SECOND[2])}
    numerators = {name: 1 - prod(1 - r for r in some) for name, some in risks.items()}
    ser = {name: value / (1 - value) for name, value in numerators.items()}
    return {
        "numerator": numerators["2"],
        "collapsed risk": _find_risk(Fork(True)),
        "ser": ser["2"],
        "mean ser": sum(chances[name] * ser[name] for name in ser),
        "risk": _find_risk(Fork(False)),
    }


def _compare_credits(problem: Problem) -> dict[str, Any]:
    """Return what VulcanFS finds with f₁ and with f = g."""
    found = {}
    for name, credit in CREDITS.items():
        result = solve(problem, ForwardSearch(SequenceConstraint(credit)))  # type: ignore[arg-type]
        certificate = result.certificate
        found[name] = None if certificate is None else float(certificate.reward)
    return found


def _clean_up() -> dict[str, Any]:
    """Return pictures of Cleanup, from the first seed that leaves the tree of the figure."""
    problem = Problem(Branches(), Linear(SLOPE))
    value, policy = forward_search(problem)
    for seed in range(100_000):
        tree = Watched(problem, 1.0, seed)
        tree.pictures = []
        if not all(tree.sample(tree.root) for _ in range(SAMPLES)):
            continue
        before = tree.take()
        passed = tree.clean_up(tree.root)
        if passed and _is_as_drawn(before) and len(tree.pictures) == 2:
            pictures = [before, *tree.pictures, tree.take()]
            kept = tree.root.actions[tree.policy[()]].value
            forward = {"value": value, "first": policy[()]}
            return {"seed": seed, "pictures": pictures, "value": kept, "forward": forward}
    raise AssertionError("no seed leaves the tree of the paper's figure")


def _is_as_drawn(picture: Mapping[str, Any]) -> bool:
    """Whether both outcomes of "left" were sampled, and one of each action that will be refused."""
    visits = {name: count for name, count, _ in picture["nodes"]}
    chosen = {name: label for name, label, is_chosen in picture["actions"] if is_chosen}
    whole = chosen.get("l1", "?")[0]
    return (
        chosen[""] == "left"
        and min(visits.get(f"l1{whole}{k}", 0) for k in (1, 2)) > 0
        and all(min(visits[f"l2{a}1"], visits[f"l2{a}2"]) == 0 for a in "lr")
        and min(visits["r1"], visits["r2"]) == 0
    )


def _describe(found: Mapping[str, Mapping[str, Any]]) -> str:
    texts = []
    if one := found.get("ser"):
        texts.append(
            f"The marked history has a numerator of {one['numerator']:.4g}, the collapsed model a "
            f"risk of {one['collapsed risk']:.4g}; the mean of ser over safe histories is "
            f"{one['mean ser']:.4g}, the certified risk of the policy {one['risk']:.4g}."
        )
    if one := found.get("credit"):
        texts.append(
            f"In the model of the figure of f, VulcanFS earns {one['f₁']:.3g} with f₁ and "
            f"{one['g']:.3g} with f = g."
        )
    if one := found.get("cleanup"):
        refused = [
            name for p in one["pictures"] for name, _, is_refused in p["nodes"] if is_refused
        ]
        texts.append(
            f"In the tree that {SAMPLES} samples leave (seed {one['seed']}), Cleanup refuses "
            f"{len(refused)} outcomes and returns to the other action of the root."
        )
    return " ".join(texts)


def _judge(found: Mapping[str, Any], bandit: Mapping[int, Mapping[str, Any]]) -> str:
    texts = []
    losses = _find_losses(bandit)
    if losses:
        texts.append(
            f"On the bandit f = g costs up to {max(losses.values()):.1f} % of what f₁ earns."
        )
    if "cleanup" in found:
        texts.append(
            "With f₁ all outcomes of an action have the same ser and the same f, so that at the "
            "horizon Cleanup can refuse nothing that Sample let pass: what it refuses lies before "
            "the horizon, where the reward that would justify the risk was not counted yet."
            + _add_lost(found["cleanup"])
        )
    return " ".join(texts)


def _add_lost(one: Mapping[str, Any]) -> str:
    """Return whether Cleanup deleted what VulcanFS takes."""
    final = [label for name, label, chosen in one["pictures"][-1]["actions"] if not name and chosen]
    if final == [one["forward"]["first"]]:
        return ""
    return (
        f" Here it deletes what VulcanFS takes, which is worth {one['forward']['value']:.3g} where "
        f"{one['value']:.3g} is left."
    )


def _find_losses(bandit: Mapping[int, Mapping[str, Any]]) -> dict[int, float]:
    """Return what f = g loses against f₁, in percent."""
    return {h: 100 * (1 - run["g"] / run["f₁"]) for h, run in sorted(bandit.items())}


def _list_claims(
    found: Mapping[str, Mapping[str, Any]], bandit: Mapping[int, Mapping[str, Any]]
) -> list[Claim]:
    claims = []
    if one := found.get("ser"):
        apart = max(
            abs(one["numerator"] - one["collapsed risk"]), abs(one["mean ser"] - one["risk"])
        )
        claims.append(
            Claim(
                "The mean of ser over safe histories less the risk of the policy",
                f"{one['numerator']:.4g} and {one['collapsed risk']:.4g}, {one['mean ser']:.4g} "
                f"and {one['risk']:.4g}",
                weigh(apart < EXACTLY),
                "0",
                f"{round(apart, 12):g}",
            )
        )
    losses = _find_losses(bandit)
    if losses and (one := found.get("credit")):
        holds = one["g"] < one["f₁"] and min(losses.values()) > -1e-9
        claims.append(
            Claim(
                "f = g deletes actions that f₁ keeps: its largest loss on the bandit",
                f"{one['g']:.3g} instead of {one['f₁']:.3g} in the example; on the bandit f = g "
                f"loses {min(losses.values()):.1f} to {max(losses.values()):.1f} % against f₁",
                weigh(holds),
                "a loss",
                f"{max(losses.values()):.0f} %",
            )
        )
    if one := found.get("cleanup"):
        names = [[n for n, _, is_refused in p["nodes"] if is_refused] for p in one["pictures"]]
        ends = [n for n, label, chosen in one["pictures"][-1]["actions"] if n == "" and chosen]
        claims.append(
            Claim(
                "Outcomes that Cleanup refuses in the tree of its figure, until the policy is safe",
                "as in the figure: two refusals below one outcome, then the root's other action",
                weigh(names[0] == names[-1] == [] and bool(ends)),
                "2",
                f"{sum(map(len, names))}",
            )
        )
    return claims


def _tabulate(bandit: Mapping[int, Mapping[str, Any]]) -> Table:
    losses = _find_losses(bandit)
    rows = [[h, run["f₁"], run["g"], losses[h]] for h, run in sorted(bandit.items())]
    caption = "VulcanFS on the bandit, Δ(x) = 0.002 x, with either credit"
    return Table("credits", caption, ["horizon", "f₁", "f = g", "loss % of f = g"], rows)


def _draw(found: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    figures = []
    if "ser" in found:
        figures.append(
            Figure(
                "ser",
                "Left: a policy, and one of its histories. Right: the model in which all else is "
                "collapsed, whose risk is the numerator of the history's ser",
                lambda: plot_collapse(FIRST, SECOND, found["ser"]),
            )
        )
    if "credit" in found:
        figures.append(
            Figure(
                "bad-f",
                "An action with an unlikely poor outcome: f = g refuses it, f₁ does not",
                lambda: plot_credits(POOR, SLOPE),
            )
        )
    if "cleanup" in found:
        figures.append(
            Figure(
                "cleanup",
                "Cleanup: black is the policy, grey what was sampled besides, crossed out what the "
                "constraint refuses. A dotted circle was never sampled; a dotted black one is in "
                "the policy all the same. The last step is not drawn",
                lambda: plot_cleanup(found["cleanup"]["pictures"]),
            )
        )
    return figures
