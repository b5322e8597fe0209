"""From axes to cells, blocks and tasks, with their prices: all that can be said before anything is run."""

from pipeline.cell import Block as Block
from pipeline.cell import Recipe as Recipe
from pipeline.sweep.cost import cell_seconds as cell_seconds
from pipeline.sweep.grid import Sweep as Sweep
from pipeline.sweep.grid import Times as Times
from pipeline.sweep.plan import TARGET_SECONDS as TARGET_SECONDS
from pipeline.sweep.plan import Plan as Plan
from pipeline.sweep.plan import Task as Task
from pipeline.sweep.plan import block_at as block_at
from pipeline.sweep.plan import block_seconds as block_seconds
from pipeline.sweep.plan import blocked as blocked
from pipeline.sweep.plan import blocks_shape as blocks_shape
from pipeline.sweep.plan import plan as plan
from pipeline.sweep.plan import tasks as tasks
from pipeline.sweep.plan import touched as touched
