from .forward_search import ForwardSearch as ForwardSearch
from .integer_program import IntegerProgram as IntegerProgram
from .paper import UCT as UCT
from .paper import PaperVulcan as PaperVulcan
from .paper import VulcanFS as VulcanFS
from .penalty import Penalty as Penalty
from .programs import LinearProgram as LinearProgram
from .rao_star import RAOStar as RAOStar
