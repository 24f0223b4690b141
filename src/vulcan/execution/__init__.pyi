from .controller import Controller as Controller
from .replan import Replan as Replan
from .simulation import Estimate as Estimate
from .simulation import Simulation as Simulation
