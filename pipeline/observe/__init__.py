"""What is observed of trajectories: `simulate` follows one, `observe_cells` thousands."""

from pipeline.integrate import DONE, OUTCOMES
from pipeline.observe.cells import observe_cells
from pipeline.observe.record import MERGERS, TIME_RESOLVED
from pipeline.observe.trajectory import Trajectory, simulate

__all__ = ["DONE", "MERGERS", "OUTCOMES", "TIME_RESOLVED", "Trajectory", "observe_cells", "simulate"]
