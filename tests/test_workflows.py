"""The scripts in workflows/ are run as they are: one on this machine, one by a real Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "SPHERESWEEP": str(Path(sys.executable).with_name("spheresweep"))}
SMALL = ["grid.n=8", "grid.d=[2, 3]", "grid.beta=[1, 4]", "grid.seed=4", "times=[0, 1, 5]", "horizon=5"]
# Many short blocks, half a minute together, so that a signal finds the driver at work.
LONG = ["grid.n=64", "grid.d=8", "grid.beta=[4, 9]", "grid.seed=400", "times=[0, 30]", "block=[1, 4]"]
ALIVE = {"PENDING", "RUNNING", "COMPLETING"}


def run(*command: str | Path, cwd: Path, timeout: float = 300) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def done_cells(dataset: Path) -> tuple[int, int]:
    """Cells that are done, and all cells."""
    status = xr.open_zarr(dataset).status.load()
    return int((status == 1).sum()), status.size


def until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            queue = subprocess.run(["scontrol", "show", "job"], capture_output=True, text=True, check=False)
            pytest.fail(f"{what}: not within {seconds} s\n{queue.stdout}{queue.stderr}")
        time.sleep(0.5)


def test_phase_diagram_script_goes_from_start_to_figure(tmp_path: Path) -> None:
    dataset = tmp_path / "diagram.zarr"
    command = ["env", f"DATASET={dataset}", ROOT / "workflows" / "phase_diagram.sh", *SMALL]
    run(*command, cwd=tmp_path)
    done, total = done_cells(dataset)
    assert done == total == 16
    pictures = list(tmp_path.rglob("*.png"))
    assert pictures
    assert all(picture.with_suffix(".pdf").exists() for picture in pictures)
    run(*command, cwd=tmp_path)  # a second time finds everything done


def submit(tmp_path: Path, *overrides: str) -> str:
    script = ROOT / "workflows" / "slurm_driver.sbatch"
    return run("sbatch", "--parsable", script, *overrides, cwd=tmp_path).strip()


def job(number: str) -> dict[str, str]:
    """What Slurm knows about a job."""
    shown = run("scontrol", "--oneliner", "show", "job", number, cwd=ROOT)
    return dict(re.findall(r"(\w+)=(\S*)", shown))


def log(tmp_path: Path, number: str) -> str:
    path = tmp_path / f"spheresweep-{number}.out"
    return path.read_text() if path.exists() else "(no output)"


@pytest.mark.slurm
def test_driver_job_computes_a_sweep_in_its_allocation(tmp_path: Path) -> None:
    number = submit(tmp_path, *SMALL, "store.path=small.zarr")
    until(lambda: job(number)["JobState"] not in ALIVE, seconds=180, what="job")
    assert job(number)["ExitCode"] == "0:0", log(tmp_path, number)
    done, total = done_cells(tmp_path / "small.zarr")
    assert done == total == 16


@pytest.mark.slurm
def test_driver_whose_time_is_up_requeues_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    dataset = tmp_path / "long.zarr"
    number = submit(tmp_path, *LONG, "store.path=long.zarr")
    try:
        until(lambda: dataset.exists() and done_cells(dataset)[0] > 0, seconds=120, what="first block")
        # what Slurm does two minutes before the limit
        run("scancel", "--batch", "--signal=USR1", number, cwd=tmp_path)
        until(lambda: job(number)["Restarts"] == "1", seconds=60, what="requeue")
        until(lambda: "time is up" in log(tmp_path, number), seconds=10, what="message")
        before, total = done_cells(dataset)
        assert 0 < before < total
        assert before % 4 == 0, "a block is whole or missing"

        # Slurm waits two minutes before it starts a requeued job again: ask for less, but not for the second
        # of the requeue, whose credentials slurmd refuses as revoked
        run("scontrol", "update", f"JobId={number}", "StartTime=now+3", cwd=tmp_path)
        until(lambda: job(number)["JobState"] == "RUNNING", seconds=150, what="second start")
        until(lambda: done_cells(dataset)[0] > before, seconds=120, what="progress after the restart")
    finally:
        run("scancel", number, cwd=tmp_path)
    until(lambda: job(number)["JobState"] == "CANCELLED", seconds=60, what="cancellation")

    again = submit(tmp_path, *LONG, "store.path=long.zarr")
    try:
        until(lambda: job(again)["JobState"] not in ALIVE, seconds=300, what="job")
    finally:
        subprocess.run(["scancel", again], check=False)
    assert job(again)["ExitCode"] == "0:0", log(tmp_path, again)
    done, total = done_cells(dataset)
    assert done == total
