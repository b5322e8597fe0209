"""Who computed this, with what and when: the facts that a dataset and its receipts carry, as plain JSON.

Nothing here changes a result; it lets a reader judge one. Facts that cannot be found out are left out or
empty, never guessed, and finding them never fails.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "spheresweep"
LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "finufft",
    "ducc0",
    "xarray",
    "zarr",
    "numcodecs",
    "dask",
    "distributed",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_SIMD = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512vl", "asimd", "sve", "sve2")


def now() -> str:
    """The time now, ISO 8601 in UTC to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def version() -> str:
    """The version of the package; empty where it runs without being installed."""
    return _version_of(DISTRIBUTION)


@cache
def commit() -> dict[str, str | bool]:
    """Commit of the source and whether it was changed since; empty where the source is not in git.

    An installed copy that happens to lie inside another project's repository is not taken for that project.
    """
    folder = Path(__file__).resolve().parent
    if _git(folder, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {}
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    if head is None or changed is None:
        return {}
    return {"commit": head, "modified": bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def source() -> str:
    """The program, its version and its commit, in one line."""
    facts = commit()
    words = [DISTRIBUTION, version() or "(not installed)"]
    if facts:
        words.append(f"commit {facts['commit']}" + (" with local changes" if facts["modified"] else ""))
    return " ".join(words)


@cache
def software() -> dict[str, str]:
    """Versions of Python and of the libraries that results depend on."""
    found = {name: _version_of(name) for name in LIBRARIES}
    return {"python": platform.python_version()} | {name: v for name, v in found.items() if v}


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@cache
def processor() -> dict[str, str | int | list[str]]:
    """Model of the processor, its vector instructions and the number of cores that this process may use."""
    model, flags = platform.processor() or platform.machine(), set[str]()
    try:
        if sys.platform == "darwin":
            asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
            model = subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout.strip() or model
        else:
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
                name, _, value = (part.strip() for part in line.partition(":"))
                if name == "model name":
                    model = value or model
                elif name in ("flags", "Features"):
                    flags = set(value.split())
                elif not line and flags:
                    break  # the first core speaks for all
    except (OSError, subprocess.SubprocessError):
        pass
    return {
        "model": model,
        "machine": platform.machine(),
        "features": [name for name in _SIMD if name in flags],
        "cores": cores(),
    }


def cores() -> int:
    """The number of cores that this process may use: what a batch system or a container leaves of them."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        count = min(count, round(int(quota) / int(period)))
    except (OSError, ValueError):
        pass  # no control group, or no limit in it ("max")
    return max(1, count)


def host() -> str:
    """The name of this machine."""
    return socket.gethostname()


def platform_facts() -> dict[str, object]:
    """The machine: processor, operating system and the limits on threads set in the environment."""
    return {
        "host": host(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }
