"""What holds for every test: no display, no surprises from the network, property tests that repeat.

Warnings are errors (``pyproject.toml``). Property tests draw the same examples in every run, so that a
red test is red again on the next machine; ``pytest --hypothesis-profile=search`` looks for new ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile(
    "search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeat")


def slurm_answers() -> bool:
    """Whether a Slurm controller answers here."""
    if shutil.which("sbatch") is None or shutil.which("sinfo") is None:
        return False
    try:
        return subprocess.run(["sinfo", "--noheader"], capture_output=True, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked ``slurm`` run where a Slurm answers; SPHERESWEEP_NEEDS_SLURM=1 makes them run or fail."""
    marked = [item for item in items if item.get_closest_marker("slurm")]
    if not marked or os.environ.get("SPHERESWEEP_NEEDS_SLURM") == "1" or slurm_answers():
        return
    skip = pytest.mark.skip(reason="no Slurm answers here; tests/slurm/start.sh starts one (CONTRIBUTING.md)")
    for item in marked:
        item.add_marker(skip)
