"""A sweep becomes a dataset: what is pending goes to workers, comes back as files, and is told as events."""

from pipeline.run.dataset import plan as plan
from pipeline.run.dataset import validate as validate
from pipeline.run.driver import Executor as Executor
from pipeline.run.events import BlockDone as BlockDone
from pipeline.run.events import Event as Event
from pipeline.run.events import Finished as Finished
from pipeline.run.events import Listener as Listener
from pipeline.run.events import Started as Started
from pipeline.run.events import Stopped as Stopped
from pipeline.run.events import Summary as Summary
from pipeline.run.events import Trouble as Trouble
from pipeline.run.progress import Reporter as Reporter
from pipeline.run.sweeping import run as run
