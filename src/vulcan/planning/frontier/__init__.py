"""The frontier of risk and reward: what could be earned for every risk that may be allowed.

A risk bound is easier to choose when it is known what each choice would bring. `trace_frontier`
solves one model for a range of bounds, constant ones or multiples k·Δ of one bound Δ, and puts the
best certified reward beside the risk that each allows.

**The price of risk** λ is what the best reward gains per unit of allowed risk: the reward for Δ + ε
is about that for Δ, plus λ ε. Where the state graph is small enough to be unrolled it comes from
the dual (`vulcan.solvers.layered.dual`), and is the slope of the frontier of randomised policies.
Elsewhere it is a quotient of differences between neighbouring points i and j,

    (reward_j - reward_i) / (level_j - level_i)                      for constant bounds,
    (reward_j - reward_i) / ((k_j - k_i) (Δ(reward_i) + Δ(reward_j)) / 2)    for multiples,

an estimate, and said to be one.

**Between points** nothing is guessed (`enclosure`): what is acceptable under a bound is acceptable
under every larger one, so certified policies earn at least a staircase; an upper bound holds for
every smaller bound as well; and each price that a search tried limits the reward at every allowed
risk. Points share what they know: a policy counts, certified there again, wherever it is within the
bound and none better was found. Where there is a choice, the next point goes to where the two
curves are furthest apart (`placement`).

**Several at once**: places are chosen some ahead, and points count in the order of their places,
whoever found them first, so that a frontier does not depend on the number of workers (`trace`).

All points that one worker solves (`searcher`) share a state graph: searches ask the model once for
each (state, action). Only the certificates ask it again, each for the policy that it is about.
"""

from vulcan.planning.frontier.point import Frontier, FrontierFailure, FrontierPoint
from vulcan.planning.frontier.span import Span
from vulcan.planning.frontier.trace import trace_frontier

__all__ = ["Frontier", "FrontierFailure", "FrontierPoint", "Span", "trace_frontier"]
