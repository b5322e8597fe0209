"""How near the processor's limit are the sums over pairs?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from benchmarks.measure import Table, in_turns, main, starts
from pipeline.dynamics import Dynamics
from pipeline.sphere import pairs

BETA = 4.0
SMALL = ((32, 2), (32, 3), (128, 2), (128, 3), (512, 2), (512, 3))
TARGETS = {32: 1.6, 128: 1.2, 512: 1.2}
LARGE = ((32, 32), (128, 128))
EXPONENTIALS = 2**13  # in one call of numpy.exp: in and out stay in the nearest caches


@njit(nogil=True, error_model="numpy")
def _sums(
    sums: Any, x: Any, m: Any, n: int, stride: int, d: int, force: Any, weight: Any, scratch: Any, times: int
) -> None:
    for _ in range(times):
        sums(x, m, n, stride, d, BETA, 0.0, force, weight, scratch)


@njit(nogil=True, error_model="numpy")
def _velocities(
    velocity: Any,
    x: Any,
    m: Any,
    n: int,
    stride: int,
    d: int,
    v: Any,
    weight: Any,
    scratch: Any,
    times: int,
) -> None:
    p, matrices = np.array([BETA, 1.0, 1.0 / n]), np.empty((0, 0, 0))
    for _ in range(times):
        velocity(x, m, n, stride, d, 0.0, p, matrices, v, weight, scratch)


def flat(n: int, d: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Random tokens in the layout of the kernels: positions, masses, stride."""
    stride = pairs.stride_of(n)
    x, m = np.full((d, stride), pairs.padding(d)), np.zeros(stride)
    x[:, :n], m[:n] = starts(n, d, 1)[0].T, 1.0
    return x.ravel(), m, stride


def contenders(n: int, d: int, work: int) -> tuple[dict[str, Any], int]:
    """The pair sum, the whole velocity and numpy.exp, and how often the first two are done in one call."""
    x, m, stride = flat(n, d)
    force, weight = np.empty(x.size), np.empty(stride)
    scratch = np.empty(pairs.scratch_size(stride, d))
    gaps = np.linspace(0.0, 2.0 * BETA, EXPONENTIALS)
    arguments, out = -gaps, np.empty(EXPONENTIALS)
    times = max(1, work // (n * n * d))
    sums = pairs.circle_sums if d == 2 else pairs.sphere_sums
    velocity = Dynamics().field(d).velocity
    return {
        "sums": lambda: _sums(sums, x, m, n, stride, d, force, weight, scratch, times),
        "velocity": lambda: _velocities(velocity, x, m, n, stride, d, force, weight, scratch, times),
        "exp": lambda: np.exp(arguments, out=out),
    }, times


def beside_exp(quick: bool) -> Table:
    """d = 2 and 3: each exponential serves both tokens of a pair i < j."""
    rows = []
    for n, d in SMALL:
        calls, times = contenders(n, d, 10_000 if quick else 3_000_000)
        taken = in_turns(calls, rounds=3 if quick else 51, least=0.0 if quick else 2e-3)
        work = times * n * (n - 1) / 2
        per_pair = taken.seconds("sums") / work * 1e9
        exp = taken.seconds("exp") / EXPONENTIALS * 1e9
        ratio = taken.ratio("sums", "exp", work, EXPONENTIALS)
        whole = taken.ratio("velocity", "exp", work, EXPONENTIALS)
        rows.append((n, d, per_pair, exp, ratio, TARGETS[n], ratio <= TARGETS[n], whole))
    columns = (
        "n",
        "d",
        "ns per pair",
        "ns per numpy.exp",
        "ratio",
        "target",
        "reached",
        "ratio, whole velocity",
    )
    note = "Pairs are i < j. The whole velocity adds normalisation and the clock."
    return Table("Pair sums on one core, beside numpy.exp", columns, rows, (note,))


def beside_dgemm(quick: bool) -> Table:
    """Larger d: 4d flops for each ordered pair, at the rate of a large matrix product, and one exponential."""
    size = 64 if quick else 512
    a, b, c = (np.random.default_rng(0).standard_normal((size, size)) for _ in range(3))
    rows = []
    for n, d in LARGE:
        calls, times = contenders(n, d, 40_000 if quick else 10_000_000)
        calls["dgemm"] = lambda: np.matmul(a, b, out=c)
        taken = in_turns(calls, rounds=3 if quick else 51, least=0.0 if quick else 2e-3)
        flop = 4.0 * d * n * n * times
        rate = 2.0 * size**3 / taken.seconds("dgemm") / 1e9
        plain = 1 / taken.ratio("sums", "dgemm", flop, 2.0 * size**3)
        # the least time: flops at the rate of dgemm, then n² exponentials, or n² / 2 if each served a pair
        exps = 1 / taken.ratio("sums", "exp", n * n * times, EXPONENTIALS)
        share = plain + exps
        rows.append((n, d, flop / taken.seconds("sums") / 1e9, rate, plain, share, 0.5, share >= 0.5))
    columns = (
        "n",
        "d",
        "Gflop/s",
        "Gflop/s of dgemm",
        "share",
        "share, exponentials counted",
        "target",
        "reached",
    )
    notes = (
        "Flops are 4d for each of n² ordered pairs. The last share adds the time of n² numpy.exp to that of the "
        "flops.",
        f"dgemm is numpy.matmul of {size} x {size} on one core; BLAS: {blas()}.",
    )
    return Table("Pair sums in higher dimension, beside dgemm", columns, rows, notes)


def blas() -> str:
    """The BLAS that NumPy was built with."""
    found: Any = np.show_config(mode="dicts")
    library = found["Build Dependencies"]["blas"]
    return f"{library['name']} {library['version']}"


def vectors(quick: bool) -> Table:
    """Which registers the packed float64 instructions of the compiled sums use."""
    rows = []
    for sums in (pairs.circle_sums, pairs.sphere_sums):
        if not sums.signatures:
            x, m, stride = flat(8, 2)
            scratch = np.empty(pairs.scratch_size(stride, 2))
            sums(x, m, 8, stride, 2, BETA, 0.0, np.empty(x.size), np.empty(stride), scratch)
        text = "\n".join(sums.inspect_asm().values())
        packed = re.findall(r"^\s+v?\w+pd\s.*$", text, re.MULTILINE)
        wide = [sum(f"%{kind}mm" in line for line in packed) for kind in "zyx"]
        rows.append((sums.__name__, *wide))
    columns = ("kernel", "512 bits", "256 bits", "128 bits")
    return Table("Packed float64 instructions in the compiled kernels, by width", columns, rows)


def ask(quick: bool) -> Iterator[Table]:
    yield beside_exp(quick)
    yield beside_dgemm(quick)
    yield vectors(quick)


if __name__ == "__main__":
    main("How near the processor's limit are the sums over pairs?", ask)
