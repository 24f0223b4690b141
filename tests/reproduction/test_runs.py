"""Runs of a search, and policies that act alike."""

import vulcan
from reproduction.runs import acts_alike
from vulcan import LocalVulcan
from vulcan.domains import Bandit


def test_policies_that_act_alike():
    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    tree = vulcan.solve(problem, vulcan.ForwardSearch()).policy
    assert acts_alike(tree, vulcan.solve(problem, LocalVulcan(), samples=5000).policy)
    other = vulcan.solve(problem, vulcan.Pareto()).policy
    assert not acts_alike(tree, other)
    assert not acts_alike(other, tree)
    partial = vulcan.solve(problem, LocalVulcan.paper(), samples=5, complete=False).policy
    assert not acts_alike(partial, tree)
    assert not acts_alike(None, tree)
