from .histories import er as er
from .histories import f1 as f1
from .histories import g as g
from .histories import ser as ser
from .policy import Policy as Policy
from .policy import RandomisedPolicy as RandomisedPolicy
from .run import Run as Run
from .views import PolicyTable as PolicyTable
