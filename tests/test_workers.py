"""Workers of every kind take calls, compute on one thread and outlive their deaths."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from pipeline import run, store, workers
from pipeline.workers import settings
from tests import sabotage
from tests.tiny import bits, tiny_sweep


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("workers.kind", {}),
        ("workers.kind", {"kind": "cloud"}),
        ("workers.processes", {"kind": "local", "processes": 0}),
        ("workers.processes", {"kind": "local", "processes": 1.5}),
        ("workers.processes", {"kind": "local", "processes": True}),
        ("workers.threads", {"kind": "none", "threads": "2"}),
        ("workers.memory", {"kind": "local", "memory": "lots"}),
        ("workers.memory", {"kind": "local", "memory": "1MB"}),
        ("workers.dashboard", {"kind": "local", "dashboard": 70000}),
        ("workers.procs", {"kind": "local", "procs": 2}),
        ("workers.jobs", {"kind": "slurm", "jobs": 0}),
        ("workers.processes", {"kind": "slurm", "cores": 8, "processes": 3}),
        ("workers.walltime", {"kind": "pbs", "walltime": "soon"}),
        ("workers.walltime", {"kind": "pbs", "walltime": "60"}),
        ("workers.directives", {"kind": "slurm", "directives": "--qos=long"}),
        ("workers.address", {"kind": "connect"}),
        ("workers.address", {"kind": "connect", "address": "tcp://x:1", "scheduler_file": "y"}),
    ],
)
def test_bad_options_are_refused_in_one_line_that_names_the_key(key: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got .*; allowed: ") as refusal:
        workers.read(options)
    assert str(refusal.value).startswith(f"{key}: ")
    assert "\n" not in str(refusal.value)


def test_options_become_descriptions() -> None:
    assert workers.read({"kind": "none"}) == workers.InProcess()
    assert workers.read({"kind": "local", "processes": 3}) == workers.Local(processes=3)
    assert workers.read({"kind": "slurm", "cores": 8, "directives": ["--qos=long"]}) == workers.Batch(
        "slurm", cores=8, directives=("--qos=long",)
    )
    assert workers.read({"kind": "connect", "address": "tcp://x:1"}) == workers.Connect("tcp://x:1")


def test_the_serial_executor_calls_at_once_and_keeps_errors_for_the_future() -> None:
    with workers.InProcess(threads=3).open() as executor:
        assert (executor.slots, executor.threads) == (1, 3)
        assert executor.submit(divmod, 7, 2).result() == (3, 1)
        assert isinstance(executor.submit(divmod, 7, 0).exception(), ZeroDivisionError)


def test_a_lost_worker_is_told_from_a_failed_call() -> None:
    import distributed

    assert workers.is_lost(distributed.KilledWorker("task", None, 0))
    assert workers.is_lost(BrokenExecutor())
    assert not workers.is_lost(ValueError("no"))
    assert not workers.is_lost(MemoryError())


# --- on this machine


@pytest.fixture(scope="module")
def two() -> Iterator[workers.Remote]:
    with workers.Local(processes=2).open() as executor:
        deadline = time.monotonic() + 60
        while executor.slots < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield executor


def test_local_workers_are_processes_that_work_at_the_same_time(two: workers.Remote) -> None:
    assert two.threads == 1
    assert "2 worker processes" in two.description
    found = {future.result() for future in [two.submit(sabotage.waste_time, 0.3) for _ in range(4)]}
    assert len(found) == 2
    assert os.getpid() not in found


def test_the_same_call_is_made_as_often_as_it_is_submitted(two: workers.Remote, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    futures = [two.submit(_count, str(counter)) for _ in range(5)]
    wait(futures)
    assert len(counter.read_text()) == 5


def _count(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("x")


def test_local_workers_compute_on_one_thread_whatever_they_inherit(two: workers.Remote) -> None:
    names = tuple(settings.ONE_THREAD)
    assert two.submit(sabotage.environment, names).result() == settings.ONE_THREAD
    assert settings.ONE_THREAD.keys() >= {
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"
    }  # fmt: skip


def test_errors_of_calls_come_back(two: workers.Remote) -> None:
    with pytest.raises(ZeroDivisionError):
        two.submit(divmod, 1, 0).result()


def test_a_killed_worker_is_told_and_another_takes_its_place(two: workers.Remote) -> None:
    error = two.submit(sabotage.die).exception(timeout=60)
    assert error is not None
    assert workers.is_lost(error)
    assert two.submit(sabotage.waste_time, 0.0).result(timeout=60)
    deadline = time.monotonic() + 60
    while two.slots < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_workers_leave_ctrl_c_to_the_driver(two: workers.Remote, tmp_path: Path) -> None:
    assert two.submit(sabotage.interrupt_yourself, str(tmp_path / "m")).result(timeout=60) == "still here"


def test_a_dashboard_port_that_is_taken_is_no_obstacle() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert settings.dashboard(port) == ":0"
    assert settings.dashboard(None) == ":0"


def test_the_environment_of_the_driver_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with settings.one_thread():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_sweep_on_local_workers_says_nothing_that_was_not_asked_for(tmp_path: Path) -> None:
    code = f"""
from pipeline import run, workers
from tests.tiny import tiny_sweep
if __name__ == "__main__":
    run.run(tiny_sweep(n=(3,), d=(2,)), {str(tmp_path / "data.zarr")!r}, executor=workers.Local(processes=2))
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run.validate(tmp_path / "data.zarr") == []


# --- a scheduler that is there


def test_workers_of_a_scheduler_that_is_there_are_found_by_address_and_by_file(
    tmp_path: Path, two: workers.Remote
) -> None:
    address = two._client.scheduler.address
    file = tmp_path / "scheduler.json"
    two._client.write_scheduler_file(str(file))
    run.run(tiny_sweep(n=(3,), d=(2,)), tmp_path / "alone.zarr", executor=workers.Serial())
    for k, where in enumerate([workers.Connect(address), workers.Connect(scheduler_file=str(file))]):
        run.run(tiny_sweep(n=(3,), d=(2,)), tmp_path / f"{k}.zarr", executor=where)
        assert bits(tmp_path / f"{k}.zarr") == bits(tmp_path / "alone.zarr")
    assert two.submit(sabotage.waste_time, 0.0).result()  # left running


def test_a_scheduler_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    for where, key in [
        (workers.Connect(address, timeout=1.0), r"workers\.address"),
        (workers.Connect(scheduler_file=str(tmp_path / "no.json")), r"workers\.scheduler_file"),
    ]:
        with pytest.raises(ValueError, match=rf"^{key}: got [^\n]*; allowed: [^\n]*$"), where.open():
            pass


# --- batch systems


def test_job_scripts_ask_for_what_was_configured(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "jobs": 2,
        "cores": 8,
        "memory": "16GiB",
        "walltime": "02:00:00",
        "queue": "short",
        "account": "tokens",
        "directives": ("--qos=long",),
        "prologue": ("module load python",),
        "dashboard": None,
    }
    with workers.Batch("slurm", **options).cluster() as cluster:
        script = cluster.job_script()
    for line in (
        "#SBATCH -p short",
        "#SBATCH -A tokens",
        "--cpus-per-task=8",
        "-t 02:00:00",
        "--qos=long",
        "module load python",
        "--nworkers 8",
        "--nthreads 1",
        "--lifetime 6900s",
        "--mem=16G",
    ):
        assert line in script, line
    for name in settings.ONE_THREAD:
        assert f"export {name}=1" in script
    with workers.Batch("pbs", **options, processes=2).cluster() as cluster:
        script = cluster.job_script()
    for line in (
        "#PBS -q short",
        "#PBS -A tokens",
        "select=1:ncpus=8:mem=16g",
        "walltime=02:00:00",
        "--nworkers 2",
    ):
        assert line in script, line
    assert workers.Batch("pbs", cores=8, processes=2).threads == 4


def test_importing_the_batch_systems_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    code = "from pipeline.workers import batch; assert batch._jobqueue().SLURMCluster"
    environment = {**os.environ, "HOME": str(tmp_path), "DASK_CONFIG": str(tmp_path / "dask")}
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=120, env=environment, cwd=Path(__file__).parents[1]
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`sbatch` that runs the job here, and `scancel` that ends it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    scripts = {
        "sbatch": f'cp "$1" {jobs}/$$.sh; setsid bash {jobs}/$$.sh >{jobs}/$$.log 2>&1 & '
        f'echo $! >{jobs}/$$.pid; echo "Submitted batch job $$"',
        "scancel": f'for job in "$@"; do kill -- -$(cat {jobs}/$job.pid); done; true',
    }
    for name, text in scripts.items():
        file = folder / name
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return jobs


def test_a_batch_system_computes_the_same_dataset(tmp_path: Path, fake_slurm: Path) -> None:
    made = tiny_sweep(n=(3,), d=(2,))
    where = workers.Batch(
        "slurm", jobs=1, cores=2, interface="lo", scratch=str(tmp_path), dashboard=None, memory="2GiB"
    )
    run.run(made, tmp_path / "batch.zarr", executor=where)
    run.run(made, tmp_path / "alone.zarr", executor=workers.Serial())
    assert bits(tmp_path / "batch.zarr") == bits(tmp_path / "alone.zarr")
    assert len(list(fake_slurm.glob("*.sh"))) == 1
    assert {receipt["pid"] for receipt in store.receipts(tmp_path / "batch.zarr")} != {os.getpid()}
    (job,) = fake_slurm.glob("*.pid")
    deadline = time.monotonic() + 30
    while Path(f"/proc/{job.read_text().strip()}").exists():
        assert time.monotonic() < deadline, "the job was not cancelled"
        time.sleep(0.1)
