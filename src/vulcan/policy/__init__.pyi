from .policy import Policy as Policy
from .policy import RandomisedPolicy as RandomisedPolicy
from .run import Run as Run
from .views import PolicyTable as PolicyTable
