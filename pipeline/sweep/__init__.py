"""From axes to cells, blocks and tasks, with their prices: all that can be said before anything is run."""

from pipeline.sweep.grid import Sweep as Sweep
from pipeline.sweep.grid import Times as Times
