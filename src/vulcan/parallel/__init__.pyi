from .executors import Executor as Executor
from .executors import Threads as Threads
from .processes import Processes as Processes
from .ray_cluster import Ray as Ray
