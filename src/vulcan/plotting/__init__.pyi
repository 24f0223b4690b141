from .comparison import plot_comparison as plot_comparison
from .frontier import plot_frontier as plot_frontier
from .simulation import plot_simulation as plot_simulation
from .style import check_figure_file as check_figure_file
from .style import save as save
