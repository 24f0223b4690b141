from .local_vulcan import LocalVulcan as LocalVulcan
from .vulcan import Vulcan as Vulcan
