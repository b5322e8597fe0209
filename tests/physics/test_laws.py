"""Laws that hold for every start: energy, norms, symmetries, conservation, rates, order of accuracy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import iv

from pipeline import simulate
from pipeline.dynamics import Dynamics, Matrix
from pipeline.integrate import Adaptive
from tests import reference
from tests.physics import golden

NAMES = pytest.mark.parametrize("name", ["sa", "usa"])


def log_grid(name: str, beta: float, count: int, last: float) -> np.ndarray:
    """-inf, then log times from the first motion on (USA runs e^β faster) to ``last``."""
    first = math.log(1e-3) - (beta if name == "usa" else 0)
    return np.concatenate([[-np.inf], np.linspace(first, last, count)])


@NAMES
@pytest.mark.parametrize(
    ("n", "d", "beta"), [(12, 2, 0.0), (12, 3, 1.0), (20, 2, 9.0), (16, 3, 50.0), (8, 2, 300.0)]
)
def test_energy_never_decreases_and_norms_stay(name: str, n: int, d: int, beta: float):
    """By more than 1e-12 relative, from the start through every merger, at the default tolerance."""
    weights, x = reference.random_weights(n, n), reference.random_tokens(n, d, 2)
    consensus = simulate(x, beta, dynamics=name, weights=weights).log_time_to_clusters[0]
    run = simulate(
        x, beta, dynamics=name, weights=weights, log_times=log_grid(name, beta, 1500, consensus + 3)
    )
    assert run.outcome == 0
    assert np.all(np.diff(run.energy) >= -1e-12 * run.energy[1:])
    assert np.abs(np.sum(run.tokens**2, axis=-1) - 1).max() < 1e-12
    assert run.energy[-1] == pytest.approx(1.0, abs=1e-14)  # the total weight, squared
    assert run.cluster_count[-1] == 1


@NAMES
def test_observables_are_functions_of_the_saved_tokens(name: str):
    n, d, beta, delta = 14, 3, 12.0, 0.01
    weights, x = reference.random_weights(n, 5), reference.random_tokens(n, d, 5)
    run = simulate(
        x, beta, dynamics=name, weights=weights, log_times=log_grid(name, beta, 60, 8.0), tolerance=delta
    )
    for i, y in enumerate(run.tokens):
        assert run.energy[i] == pytest.approx(reference.energy(y, beta, weights), abs=1e-13)
        assert run.order_parameter[i] == pytest.approx(reference.order_parameter(y, weights), abs=1e-13)
        assert run.pair_sync_fraction[i] == pytest.approx(
            reference.pair_sync_fraction(y, delta, weights), abs=1e-13
        )
        assert run.cluster_count[i] == len(reference.components(y, delta))
    assert run.tokens[0] == pytest.approx(x, abs=1e-15)
    assert run.times == pytest.approx(np.exp(run.log_times))
    assert run.weights.sum() == pytest.approx(1.0, abs=1e-14)


@NAMES
@pytest.mark.parametrize(("n", "d", "beta"), [(10, 2, 6.0), (10, 3, 4.0), (7, 12, 9.0), (12, 3, 40.0)])
def test_rotation_and_permutation_change_nothing(name: str, n: int, d: int, beta: float):
    weights, x = reference.random_weights(n, 1), reference.random_tokens(n, d, 3)
    permutation = np.random.default_rng(0).permutation(n)
    log_times = log_grid(name, beta, 40, 6.0)
    base = simulate(x, beta, dynamics=name, weights=weights, log_times=log_times)
    rotated = x @ reference.random_rotation(d, 2)
    others = (
        simulate(rotated, beta, dynamics=name, weights=weights, log_times=log_times),
        simulate(x[permutation], beta, dynamics=name, weights=weights[permutation], log_times=log_times),
        simulate(
            rotated[permutation], beta, dynamics=name, weights=weights[permutation], log_times=log_times
        ),
    )
    for other in others:
        for variable in ("pair_sync_fraction", "cluster_count", "energy", "order_parameter"):
            assert np.abs(getattr(other, variable) - getattr(base, variable)).max() < 1e-8, variable
        assert other.log_time_to_clusters == pytest.approx(base.log_time_to_clusters, abs=1e-8, rel=1e-8)
    assert np.abs(others[1].tokens - base.tokens[:, permutation]).max() < 1e-7


@pytest.mark.parametrize(
    ("name", "beta", "times"),
    [
        ("sa", 1.0, (0.5, 2.0, 5.0, 7.0)),
        ("sa", 9.0, (0.5, 2.0, 5.0, 30.0)),
        ("usa", 1.0, (0.2, 1.0, 2.0, 3.0)),
        ("usa", 4.0, (0.1, 0.3, 0.8, 1.0)),
    ],
)
def test_motion_in_the_span_is_the_motion(name: str, beta: float, times: tuple[float, ...], tight: Adaptive):
    """d=1024, n=32: against V = diag(1, …, 1), which may not be reduced, and DOP853 in 1024 dimensions."""
    n, d = 32, 1024
    x = reference.random_tokens(n, d, 0)
    run = simulate(x, beta, dynamics=name, times=times, horizon=times[-1], integrator=tight)
    whole = Dynamics(name, value=Matrix(kind="diagonal", diagonal=(1.0,) * d))
    unreduced = simulate(x, beta, dynamics=whole, times=times[:2], horizon=times[1], integrator=tight)
    field = reference.textbook(beta, reference.equal_weights(n), softmax=name == "sa")
    expected = reference.tokens_at(field, x, np.array(times), rtol=1e-12)
    weights = reference.equal_weights(n)
    assert np.abs(run.tokens - expected).max() < 1e-8
    assert np.abs(unreduced.tokens - run.tokens[:2]).max() < 1e-8
    for variable in ("energy", "order_parameter", "pair_sync_fraction", "cluster_count"):
        assert np.abs(getattr(unreduced, variable) - getattr(run, variable)[:2]).max() < 1e-8
    assert run.energy == pytest.approx([reference.energy(y, beta, weights) for y in expected], abs=1e-8)


@NAMES
def test_coincident_tokens_are_one_weighted_token(name: str):
    x = reference.random_tokens(5, 3, 9)
    repeats = np.array([1, 3, 2, 1, 2])
    weights = repeats / repeats.sum()
    log_times = log_grid(name, 5.0, 30, 5.0)
    copies = simulate(np.repeat(x, repeats, axis=0), 5.0, dynamics=name, log_times=log_times)
    atoms = simulate(x, 5.0, dynamics=name, weights=weights, log_times=log_times)
    assert copies.energy == pytest.approx(atoms.energy, abs=1e-10)
    assert copies.order_parameter == pytest.approx(atoms.order_parameter, abs=1e-10)
    assert np.array_equal(copies.cluster_count, atoms.cluster_count)
    assert copies.log_time_to_clusters[:5] == pytest.approx(atoms.log_time_to_clusters, abs=1e-8)
    assert np.all(copies.log_time_to_clusters[5:] == -np.inf)


def test_only_ratios_of_weights_matter():
    x, weights = reference.random_tokens(6, 3, 1), reference.random_weights(6, 1)
    one = simulate(x, 3.0, weights=weights, times=[1.0, 4.0])
    other = simulate(x, 3.0, weights=8 * weights, times=[1.0, 4.0])
    assert other.energy == pytest.approx(one.energy, abs=1e-13)
    assert other.log_time_to_clusters == pytest.approx(one.log_time_to_clusters, abs=1e-10)


def lifted_angles(tokens: np.ndarray) -> np.ndarray:
    return np.unwrap(np.arctan2(tokens[..., 1], tokens[..., 0]), axis=0)


@pytest.mark.parametrize("beta", [0.0, 2.0, 8.0, 30.0])
def test_usa_conserves_the_mean_angle_on_the_circle(beta: float, tight: Adaptive):
    """Σ mᵢθᵢ through all mergers, so that the consensus angle is one of n known ones."""
    n = 9
    weights, x = reference.random_weights(n, 7), reference.random_tokens(n, 2, 7)
    consensus = simulate(x, beta, dynamics="usa", weights=weights).log_time_to_clusters[0]
    grid = log_grid("usa", beta, 400, consensus + 4)
    run = simulate(x, beta, dynamics="usa", weights=weights, log_times=grid, integrator=tight)
    theta = lifted_angles(run.tokens)
    assert np.abs(theta @ weights - theta[0] @ weights).max() < 1e-9
    order = np.argsort(theta[0])
    cuts = np.concatenate([[0], np.cumsum(weights[order])[:-1]])
    # cutting after k tokens lifts those k by a whole turn
    candidates = np.exp(1j * (theta[0] @ weights + 2 * np.pi * cuts))
    assert np.abs(np.exp(1j * theta[-1, 0]) - candidates).min() < 1e-8


@NAMES
@pytest.mark.parametrize("beta", [1.0, 16.0, 100.0])
def test_cyclic_order_on_the_circle_never_changes(name: str, beta: float):
    x = reference.random_tokens(24, 2, 4)
    run = simulate(x, beta, dynamics=name, log_times=log_grid(name, beta, 200, 3.0), horizon=math.exp(3.0))
    theta = lifted_angles(run.tokens)
    order = np.argsort(theta[0])
    gaps = np.diff(np.concatenate([theta[:, order], theta[:, order[:1]] + 2 * np.pi], axis=1), axis=1)
    assert gaps.min() > -1e-12


@NAMES
@pytest.mark.parametrize("beta", [0.5, 5.0, 20.0])
def test_hemisphere_is_never_left(name: str, beta: float):
    """n <= d: all tokens see w = the minimal solution of Xw = 1; min ⟨xᵢ,w⟩ never decreases and all meet."""
    x = reference.random_tokens(6, 8, 1)
    w = np.linalg.pinv(x) @ np.ones(6)
    w /= np.linalg.norm(w)
    run = simulate(x, beta, dynamics=name, log_times=log_grid(name, beta, 300, 12.0))
    lowest = (run.tokens @ w).min(axis=1)
    assert np.all(np.diff(lowest) > -1e-9)
    assert np.isfinite(run.log_time_to_clusters[0])


@NAMES
@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0, 8.0])
def test_late_chords_shrink_at_the_rate_of_the_linearisation(name: str, beta: float):
    """Rate 1 (SA) or e^β (USA), measured on chords below 1e-3; curvature adds 1e-6."""
    weights, x = reference.random_weights(6, 6), reference.random_tokens(6, 4, 6)
    rate = 1.0 if name == "sa" else math.exp(beta)
    first = simulate(x, beta, dynamics=name, weights=weights, tolerance=5e-7)  # 1-⟨x,y⟩ = 5e-7: chord 1e-3
    start = math.exp(first.log_time_to_clusters[0])
    times = start + np.array([1.0, 3.0]) / rate
    run = simulate(
        x,
        beta,
        dynamics=name,
        weights=weights,
        times=times,
        horizon=times[-1],
        integrator=Adaptive(tolerance=1e-12, coalescence=1e-9),
    )
    chords = [math.sqrt(2 * reference.half_squared_distances(y).max()) for y in run.tokens]
    assert math.log(chords[0] / chords[1]) / (times[1] - times[0]) == pytest.approx(rate, rel=1e-4)


@pytest.mark.parametrize("beta", list(golden.G6))
@NAMES
def test_g6_uniform_circle_loses_its_symmetry_at_the_predicted_rate(name: str, beta: float, tight: Adaptive):
    """128 equally spaced tokens displaced by 1e-6 sin k*θ: the mode grows at k²I_k/β (USA), over I_0 (SA)."""
    k, sa, usa = golden.G6[beta]
    rate = sa if name == "sa" else usa
    assert rate == pytest.approx(k * k * iv(k, beta) / beta / (iv(0, beta) if name == "sa" else 1), rel=1e-12)
    theta = 2 * np.pi * np.arange(128) / 128
    x = reference.circle(theta + 1e-6 * np.sin(k * theta))
    times = np.array([1.0, 2.0]) / rate
    run = simulate(x, beta, dynamics=name, times=times, horizon=times[-1], integrator=tight)
    displacement = np.angle(np.exp(1j * (np.arctan2(run.tokens[..., 1], run.tokens[..., 0]) - theta)))
    amplitude = displacement @ np.sin(k * theta) / 64
    assert amplitude == pytest.approx(1e-6 * np.exp(rate * times), rel=3e-5)


@pytest.mark.parametrize("key", list(golden.G7), ids=str)
@NAMES
def test_g7_polygons_lose_their_symmetry_at_the_predicted_rates(
    name: str, key: tuple[int, float], tight: Adaptive
):
    n, beta = key
    theta = 2 * np.pi * np.arange(n) / n
    z = 1.0 if name == "usa" else sum(iv(n * j, beta) for j in range(-20, 21))
    for j in range(1, n // 2 + 1):
        rate = golden.G7[key][j] / z
        mode = np.cos(j * theta)
        times = np.array([1.0, 2.0]) / rate
        run = simulate(
            reference.circle(theta + 1e-6 * mode),
            beta,
            dynamics=name,
            times=times,
            horizon=times[-1],
            integrator=tight,
        )
        displacement = np.angle(np.exp(1j * (np.arctan2(run.tokens[..., 1], run.tokens[..., 0]) - theta)))
        amplitude = displacement @ mode / (mode @ mode)
        assert amplitude == pytest.approx(1e-6 * np.exp(rate * times), rel=3e-5)


ORDER_CELLS = [
    (name, d, beta, seed) for name in ("sa", "usa") for d, beta in ((2, 6.0), (8, 3.0)) for seed in range(3)
]


def test_error_against_tolerance_is_a_straight_line():
    """Eight tokens, active phase, saves between the steps: log error over log tolerance has slope 1, and the
    work grows as for an order of at least five."""
    tolerances = 10.0 ** -np.arange(5, 13)
    errors, work = [], []
    for name, d, beta, seed in ORDER_CELLS:
        x = reference.random_tokens(8, d, seed)
        times = np.array([0.37, 0.71, 1.3]) / (1 if name == "sa" else math.exp(beta) / 3)
        field = reference.textbook(beta, reference.equal_weights(8), softmax=name == "sa")
        expected = reference.tokens_at(field, x, times, rtol=1e-13)
        runs = [
            simulate(
                x,
                beta,
                dynamics=name,
                times=times,
                horizon=times[-1] * 1.1,
                integrator=Adaptive(tolerance=tolerance),
            )
            for tolerance in tolerances
        ]
        errors.append([np.abs(run.tokens - expected).max() for run in runs])
        work.append([run.evaluations for run in runs])
    log_error = np.log10(np.array(errors)).mean(axis=0)
    log_tolerance = np.log10(tolerances)
    slope, intercept = np.polyfit(log_tolerance, log_error, 1)
    residual = log_error - (slope * log_tolerance + intercept)
    assert 0.8 < slope < 1.2
    assert np.abs(residual).max() < 0.5  # decades
    assert np.all(log_error < log_tolerance + 1)  # a global error of at most ten times the local one
    order = -np.polyfit(np.log10(np.array(work)).mean(axis=0), log_error, 1)[0]
    assert order > 5
