"""The dataset on disk: created at once, written block by block, taken by one driver at a time, checked.

The only door to Zarr. `xarray.open_zarr(path)` reads a dataset without this package.
"""

from pipeline.store.blocks import Index as Index
from pipeline.store.blocks import add_receipts as add_receipts
from pipeline.store.blocks import block_failures as block_failures
from pipeline.store.blocks import discard as discard
from pipeline.store.blocks import failures as failures
from pipeline.store.blocks import has_block as has_block
from pipeline.store.blocks import labels as labels
from pipeline.store.blocks import receipts as receipts
from pipeline.store.blocks import sweep_up as sweep_up
from pipeline.store.blocks import write_block as write_block
from pipeline.store.blocks import written as written
from pipeline.store.check import faults as faults
from pipeline.store.layout import CHUNK_CELLS as CHUNK_CELLS
from pipeline.store.layout import FOLDER as FOLDER
from pipeline.store.layout import Layout as Layout
from pipeline.store.layout import Stored as Stored
from pipeline.store.layout import add_history as add_history
from pipeline.store.layout import create as create
from pipeline.store.layout import exists as exists
from pipeline.store.layout import inspect as inspect
from pipeline.store.leases import Lease as Lease
from pipeline.store.leases import lease as lease
