"""The tolerances of Vulcan, and why they are what they are.

`TOLERANCE` is the only slack in a comparison of risk with allowed risk. Searches and certificates
use the same one: a history passes its local constraint, and a policy its bound, when
risk <= allowed + TOLERANCE. It is there for ties that are exact on paper and differ by a rounding
in floating point (an action of risk 0.01 under the constant bound 0.01). By the theorems
(docs/theory/proofs.md) a local slack adds the same amount to the policy's slack, and no more. It is
a share of 1, the largest probability, since probabilities are what is compared. What rounding does
to a reward, and a steep bound to that, is no reason to accept more: certificates bound that error
by itself (`vulcan.certificates.sums`), and hold the true numbers to this tolerance.

`SUM_TOLERANCE` is how far the probabilities of one action's outcomes may be from summing to 1:
what rounding does to honest numbers, and no more. They are used as given, never rescaled.

`AGREEMENT` is how far two computations of the same number may be apart, relative to the sizes that
were added up: the search's own reward and risk of a policy beside the certificate's, and the
answers of a compiled model beside those of the plain one.

`EXACT_GAP` is the share of an upper bound within which a policy is called the best: the rest is
rounding.

`ABSOLUTE_GAP` is the distance between a reward and an upper bound that is always small enough,
unless proof is asked for: what a share of the reward can't say where rewards are near 0.

`LARGEST_REWARD` is the largest size of a reward: sums of larger ones could leave the range of
floating point.
"""

from typing import Final

TOLERANCE: Final = 1e-12
SUM_TOLERANCE: Final = 1e-12
AGREEMENT: Final = 1e-9
EXACT_GAP: Final = 1e-9
ABSOLUTE_GAP: Final = 1e-6
LARGEST_REWARD: Final = 1e100
