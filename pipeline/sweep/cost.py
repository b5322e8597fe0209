"""What a cell will cost: seconds on one core from n, d, beta, the horizon and the integrator.

Prices order the work, size the blocks and fill `plan`; no result depends on them. They are estimates by a
fixed formula, never a measurement of this machine.

To consensus a trajectory takes evaluations in proportion to its n - 1 mergers, each dearer as beta grows:
slowly, since the clock runs with the closest pair. A first fast phase moves all n tokens; then about K
atoms are left, K = beta^((d - 1) / 2) up to n, whose number shrinks with every merger. One evaluation sums
over pairs of atoms, or over tokens by a spectral sum where that is cheaper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline import integrate, schema

if TYPE_CHECKING:
    from pipeline.sweep.grid import Sweep

# Calibrated on trajectories with n = 16 ... 256, d = 2 ... 32, beta = 0.5 ... 256, integrator tolerance 1e-8,
# on one core of a 2026 server with 512-bit vectors (AMD Zen 5).
CELL_SECONDS = 3e-5  # calling the engine, labelling and storing one cell
TOKEN_SECONDS = 1.5e-8  # one coordinate of one initial token
EVALUATION_SECONDS = 2.5e-7  # one evaluation and its share of a step, whatever n
PAIR_SECONDS = 9e-10  # one pair in one evaluation: an exponential and the rest at d = 2 ...
PAIR_DIMENSION_SECONDS = 9e-11  # ... and for each further dimension
SPECTRAL_TOKEN_SECONDS = 3e-7  # one token in one spectral sum, d = 2 and 3
SAVE_SECONDS = 3e-7  # one save time, whatever n
SAVE_PAIR_SECONDS = 4e-10  # one pair at one save time, at d = 2 ...
SAVE_PAIR_DIMENSION_SECONDS = 7e-11  # ... and for each further dimension
FAST_EVALUATIONS = 450.0  # evaluations of the fast phase, all tokens apart
MERGER_EVALUATIONS = 25.0  # evaluations for one merger at beta = 0 ...
MERGER_GROWTH = 0.36  # ... times (1 + beta) to this power
TIME_EVALUATIONS = 12.0  # evaluations for one unit of time before consensus, times (1 + beta)^(1/2)
ORDER = 8  # of the adaptive method: evaluations grow like tolerance^(-1 / order)
CALIBRATED_TOLERANCE = 1e-8


def cell_seconds(sweep: Sweep) -> NDArray[np.float64]:
    """Estimated seconds of one core for one cell, shape (n, d, beta); seeds cost the same."""
    n = np.array(sweep.n, dtype=np.float64)[:, None, None]
    d = np.array(sweep.d, dtype=np.float64)[None, :, None]
    beta = np.array(sweep.beta, dtype=np.float64)[None, None, :]
    rank = np.minimum(n, d) if sweep.dynamics.span_invariant else d + 0 * n
    pair = PAIR_SECONDS + PAIR_DIMENSION_SECONDS * (rank - 2)
    dense = n * (n - 1) / 2 * pair
    spectral = np.where(rank <= 3, SPECTRAL_TOKEN_SECONDS * n, np.inf)
    full = np.minimum(dense, spectral)

    if isinstance(sweep.integrator, integrate.Layers):
        layers = math.ceil((sweep.horizon or 0.0) / sweep.integrator.step)
        motion = layers * (EVALUATION_SECONDS + full)
    else:
        motion = _adaptive_seconds(
            sweep, sweep.integrator.local_error(sweep.tolerance), n, rank, beta, pair, full
        )
    saves = len(sweep.times.values) * bool(sweep.variables)
    save_pair = SAVE_PAIR_SECONDS + SAVE_PAIR_DIMENSION_SECONDS * (rank - 2)
    saving = saves * (SAVE_SECONDS + n * (n - 1) / 2 * save_pair)
    each = CELL_SECONDS + TOKEN_SECONDS * n * d + motion + saving
    return np.array(np.broadcast_to(each, sweep.shape[:3]))


def _adaptive_seconds(
    sweep: Sweep,
    tolerance: float,
    n: NDArray[np.float64],
    rank: NDArray[np.float64],
    beta: NDArray[np.float64],
    pair: NDArray[np.float64],
    full: NDArray[np.float64],
) -> NDArray[np.float64]:
    accuracy = (CALIBRATED_TOLERANCE / tolerance) ** (1 / ORDER)
    bounded = math.inf if sweep.horizon is None else sweep.horizon
    with np.errstate(over="ignore"):
        # Unnormalised weights run the motion up to exp(beta) faster.
        clock = np.ones_like(beta) if sweep.dynamics.normalised else np.exp(np.minimum(beta, 700))
        for_time = TIME_EVALUATIONS * accuracy * np.sqrt(1 + beta) * bounded * clock
        atoms = np.minimum(n, (1 + beta) ** ((rank - 1) / 2))
    if not sweep.dynamics.coalesces:
        return np.asarray(for_time * (EVALUATION_SECONDS + full))
    fast = np.minimum(FAST_EVALUATIONS * accuracy, for_time)
    slow = np.minimum((n - 1) * MERGER_EVALUATIONS * accuracy * (1 + beta) ** MERGER_GROWTH, for_time)
    left = np.minimum(atoms**2 / 6 * pair, full)
    return np.asarray(fast * full + slow * (EVALUATION_SECONDS + left))


def cell_bytes(sweep: Sweep) -> int:
    """Bytes of one cell in the dataset, uncompressed."""
    tail = {schema.TIME: len(sweep.times.values), schema.CLUSTERS: len(sweep.clusters)}
    return sum(
        np.dtype(v.dtype).itemsize * math.prod(tail.get(dim, 1) for dim in v.dims)
        for v in schema.variables_kept(sweep.variables)
    )
