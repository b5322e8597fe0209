"""The innermost loops alone: exponentials against mpmath, sums over pairs against long double."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pipeline import observe
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive, Layers, layers, workspace
from pipeline.observe.record import TIME_RESOLVED
from pipeline.sphere import exponential, lanes, pairs
from tests import reference


@njit
def exponentials(x: Any, natural: Any, binary: Any, least: float) -> None:
    for r in range(0, x.size, 8):
        lanes.store(natural, r, exponential.exp(lanes.load(x, r)))
        lanes.store(binary, r, exponential.exp2(lanes.load(x, r), least))


def evaluated(x: np.ndarray, least: float = -1021.0) -> tuple[np.ndarray, np.ndarray]:
    natural, binary = np.empty_like(x), np.empty_like(x)
    exponentials(x, natural, binary, least)
    return natural, binary


def test_exponentials_are_exact_to_4e_16_over_their_whole_range():
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.uniform(-708, 0, 4000),
            rng.uniform(-2, 2, 4000),
            rng.uniform(0, 708, 1000),
            10.0 ** rng.uniform(-20, 0, 500) * rng.choice([-1, 1], 500),
            np.log(2) * (np.arange(-250, 250) + 0.5),  # where the reduction changes its mind
            [0.0, -0.0, -708.0, 708.0],
        ]
    )
    x = np.append(x, np.zeros(-len(x) % 8))
    natural, binary = evaluated(x)
    with mp.workdps(40):
        worst = max(
            abs(mp.mpf(float(y)) / mp.exp(mp.mpf(float(v))) - 1) for v, y in zip(x, natural, strict=True)
        )
        worst_2 = max(
            abs(mp.mpf(float(y)) / mp.mpf(2) ** mp.mpf(float(v)) - 1) for v, y in zip(x, binary, strict=True)
        )
    assert worst < 4e-16
    assert worst_2 < 4e-16


def test_exponentials_saturate_beyond_their_range():
    x = np.array([-1e300, -800.0, 800.0, 1e300, -np.inf, np.inf, -1022.5, 1023.5])
    natural, binary = evaluated(x, least=-900.0)
    assert np.isfinite(natural).all()
    assert np.isfinite(binary).all()
    np.testing.assert_allclose(natural[x < -708], np.exp(-708.0), rtol=4e-16)
    np.testing.assert_allclose(natural[x > 708], np.exp(708.0), rtol=4e-16)
    np.testing.assert_array_equal(binary[x < -900], 2.0**-900)
    np.testing.assert_array_equal(binary[x > 1022], 2.0**1022)


FINGERPRINT = """
import hashlib
import numpy as np
from tests import reference
from tests.physics import test_kernels as kernels

x = np.random.default_rng(0).uniform(-708, 708, 4096)
found = [*kernels.evaluated(x)]
for d in (2, 3, 17):
    tokens, mass = reference.random_tokens(21, d, 0), np.linspace(1, 2, 21)
    found += kernels.summed(tokens, mass, 7.0, 1.0)
print(hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest())
"""


def test_a_processor_with_narrower_registers_gives_the_same_bits(tmp_path: Path):
    """Tables are looked up by one instruction where there are 512 bits, entry by entry elsewhere."""
    prints = []
    narrow = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2,+popcnt,+bmi,+bmi2"}
    for choice in ({}, narrow) if platform.machine() == "x86_64" else ({},):
        environment = os.environ | choice | {"NUMBA_CACHE_DIR": str(tmp_path / f"{len(prints)}")}
        ran = subprocess.run(
            [sys.executable, "-c", FINGERPRINT], env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        prints.append(ran.stdout)
    assert len(set(prints)) == 1


def laid_out(x: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Positions and masses as the kernels want them."""
    n, d = x.shape
    stride = pairs.stride_of(n)
    flat, mass = np.full((d, stride), pairs.padding(d)), np.zeros(stride)
    flat[:, :n], mass[:n] = x.T, m
    return flat.ravel(), mass, stride


def summed(x: np.ndarray, m: np.ndarray, beta: float, ref: float) -> tuple[np.ndarray, np.ndarray]:
    n, d = x.shape
    flat, mass, stride = laid_out(x, m)
    force, weight = np.full(flat.size, np.nan), np.full(stride, np.nan)
    scratch = np.full(pairs.scratch_size(stride, d), np.nan)
    sums = pairs.circle_sums if d == 2 else pairs.sphere_sums
    sums(flat, mass, n, stride, d, beta, ref, force, weight, scratch)
    return force.reshape(d, stride)[:, :n].T, weight[:n]


def expected(x: np.ndarray, m: np.ndarray, beta: float, ref: float) -> tuple[np.ndarray, np.ndarray]:
    """Force and weight by their definition, in long double."""
    x, m = x.astype(np.longdouble), m.astype(np.longdouble)
    u = x[None] - x[:, None]
    h = (u**2).sum(axis=2) / 2
    e = m[None] * np.exp(ref - beta * h)
    np.fill_diagonal(e, 0)
    return (e[..., None] * (u + h[..., None] * x[:, None])).sum(axis=1), e.sum(axis=1)


@settings(max_examples=60)
@given(
    st.integers(1, 43),
    st.sampled_from([2, 3, 4, 5, 8, 33]),
    st.sampled_from([0.0, 0.5, 4.0, 60.0, 1000.0]),
    st.integers(0, 2**20),
)
def test_sums_over_pairs_are_those_of_the_definition(n: int, d: int, beta: float, seed: int):
    x = reference.random_tokens(n, d, seed)
    m = np.random.default_rng(seed).uniform(0.1, 3.0, n)
    ref = 0.3 * beta
    force, weight = summed(x, m, beta, ref)
    exact_force, exact_weight = expected(x, m, beta, ref)
    scale = np.maximum(
        exact_weight, 1e-200
    )  # below that nothing is asked: such pairs are far weaker than others
    error = 1e-14 + 4e-16 * beta * 2  # of a weight: its exponent is rounded
    assert (np.abs(weight - exact_weight) <= error * scale).all()
    assert (np.abs(force - exact_force) <= error * scale[:, None]).all()


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_close_pairs_on_the_circle_keep_their_relative_accuracy(distance: float):
    x = np.repeat(reference.random_tokens(1, 2, 5), 9, axis=0)
    x[1:] += distance * np.random.default_rng(3).standard_normal((8, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    m = np.ones(9)
    force, _ = summed(x, m, 10.0, 0.0)
    exact, _ = expected(x, m, 10.0, 0.0)
    error = force - exact
    error -= (error * x).sum(axis=1, keepdims=True) * x  # along x it only changes the norm
    size = np.linalg.norm(np.abs(x[None] - x[:, None]).sum(axis=1).astype(float), axis=1)
    assert (np.abs(error) <= 2e-15 * size[:, None]).all()


@pytest.mark.parametrize("d", [2, 3, 5])
def test_antipodal_pairs_exert_no_force_beyond_rounding(d: int):
    x = reference.random_tokens(7, d, 11)
    for token in x:
        force, weight = summed(np.stack([token, -token]), np.ones(2), 3.0, 6.0)
        assert (np.abs(force) <= 4 * np.finfo(float).eps * weight[:, None]).all()


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("integrator", [Adaptive(), Layers(step=0.2)], ids=lambda i: type(i).__name__)
def test_what_the_room_held_before_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, integrator: Adaptive | Layers, d: int
):
    """Cells of a call share their room, so a result must not depend on the cell that came before."""
    x = np.stack([reference.random_tokens(19, d, seed) for seed in range(3)])
    found = []
    rooms = [(room, room.of) for room in (workspace.Workspace, layers.Workspace)]
    for numbers, places in ((0.0, 0), (np.nan, -7), (3.25, 2**29)):
        for room, make in rooms:

            def filled(*args: int, make: Any = make, numbers: float = numbers, places: int = places) -> Any:
                made = make(*args)
                for array in made:
                    array[...] = numbers if array.dtype == float else places
                return made

            monkeypatch.setattr(room, "of", filled)
        found.append(
            observe.observe_cells(
                x,
                np.array([40.0, 2.0, 300.0]),
                dynamics=Dynamics(),
                integrator=integrator,
                log_times=np.log([0.1, 1.0, 20.0]),
                log_horizon=np.log(20.0) if isinstance(integrator, Layers) else np.inf,
                tolerance=1e-3,
                variables=TIME_RESOLVED,
                clusters_kept=8,
            )
        )
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(value, other[name], err_msg=name)
