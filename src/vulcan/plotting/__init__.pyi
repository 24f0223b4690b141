from .figures import plot_comparison as plot_comparison
from .figures import plot_frontier as plot_frontier
from .figures import plot_simulation as plot_simulation
from .style import check_figure_file as check_figure_file
from .style import save as save
