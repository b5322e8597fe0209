"""Mergers on every time scale: when clusters meet, what lies between, and how it is told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage

from pipeline import simulate
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive
from pipeline.observe import DONE, TIME_RESOLVED, Trajectory, observe_cells
from pipeline.sphere import initial_tokens
from tests import reference
from tests.physics import golden

NAMES = pytest.mark.parametrize("name", ["sa", "usa"])
TOLERANCES = pytest.mark.parametrize(("tolerance", "allowed"), [(1e-12, 1e-8), (1e-8, 1e-6)])


def assert_log_times(found: np.ndarray, expected: np.ndarray, allowed: float) -> None:
    """|Δ log t| <= allowed max(1, |log t|) where finite; the same infinities."""
    finite = np.isfinite(expected)
    assert np.array_equal(found[~finite], expected[~finite])
    error = np.abs(found[finite] - expected[finite]) / np.maximum(1, np.abs(expected[finite]))
    assert error.max(initial=0.0) <= allowed


@TOLERANCES
@NAMES
@pytest.mark.parametrize("beta", [1, 4, 16, 64, 256, 1000])
@pytest.mark.parametrize(
    ("u0", "m1", "delta", "d"),
    [
        (0.0, 0.5, 1e-3, 2),
        (-0.5, 0.25, 1e-3, 3),
        (0.7, 0.9, 1e-3, 5),
        (-0.9, 0.5, 1e-3, 2),
        (-0.999, 0.3, 1e-3, 3),
        (0.98, 0.01, 1e-3, 2),
        (-0.2, 0.6, 1e-9, 3),
        (-0.2, 0.6, 0.5, 2),
    ],
)
def test_two_atoms_meet_at_the_time_of_the_quadrature(
    name: str, beta: float, u0: float, m1: float, delta: float, d: int, tolerance: float, allowed: float
):
    x = np.zeros((2, d))
    x[0, 0] = 1.0
    x[1, :2] = u0, math.sqrt(1 - u0 * u0)
    run = simulate(
        x,
        beta,
        dynamics=name,
        weights=[m1, 1 - m1],
        tolerance=delta,
        integrator=Adaptive(tolerance=tolerance),
    )
    assert run.outcome == DONE
    expected = reference.two_cluster_log_time(beta, u0, delta, m1, 1 - m1, name == "sa")
    assert_log_times(run.log_time_to_clusters, np.array([expected, -np.inf]), allowed)


FEW_ATOMS = {
    "three": ([0.0, 0.8, 1.9], [0.25, 0.45, 0.3]),
    "four": ([0.0, 0.8, 1.9, 3.3], [0.25, 0.25, 0.2, 0.3]),
}


@pytest.fixture(scope="module")
def fifty_digits() -> dict[tuple[str, str], np.ndarray]:
    return {
        (label, name): reference.circle_merge_log_times(*atoms, 40.0, golden.DELTA, softmax=name == "sa")
        for label, atoms in FEW_ATOMS.items()
        for name in ("sa", "usa")
    }


@NAMES
@pytest.mark.parametrize("label", list(FEW_ATOMS))
def test_few_atoms_merge_at_the_times_of_fifty_digits(
    label: str, name: str, fifty_digits: dict[tuple[str, str], np.ndarray]
):
    """β = 40, t up to e^67: to 1e-6 at the default tolerance, on the circle and in a plane of R^5."""
    angles, weights = FEW_ATOMS[label]
    plane = reference.random_rotation(5, 3)[:2]
    for tolerance, allowed in ((1e-8, 1e-6), (1e-12, 1e-8)):
        for x in (reference.circle(np.array(angles)), reference.circle(np.array(angles)) @ plane):
            run = simulate(x, 40.0, dynamics=name, weights=weights, integrator=Adaptive(tolerance=tolerance))
            assert_log_times(run.log_time_to_clusters, fifty_digits[label, name], allowed)


MODERATE = [
    ("sa", 10, 2, 9.0, 3e3, 0),
    ("sa", 12, 3, 6.0, 3e2, 1),
    ("usa", 9, 2, 5.0, 8.0, 2),
    ("sa", 8, 2, 12.0, 3e3, 3),
]


@pytest.mark.parametrize(("name", "n", "d", "beta", "end", "seed"), MODERATE)
def test_coalescence_changes_nothing_that_is_observed(
    name: str, n: int, d: int, beta: float, end: float, seed: int
):
    """Against DOP853 without coalescence (accurate pair forces, plain time), until a time it can afford."""
    weights, x = reference.random_weights(n, seed), reference.random_tokens(n, d, seed)
    log_times = np.concatenate([[-np.inf], np.linspace(math.log(end) - 9, math.log(end), 60)])
    solution = reference.solve(reference.without_self_term(beta, weights, softmax=name == "sa"), x, end)
    brute = reference.log_time_to_clusters(solution, golden.DELTA)
    run = simulate(x, beta, dynamics=name, weights=weights, log_times=log_times, horizon=end)
    assert run.outcome == DONE
    assert_log_times(run.log_time_to_clusters, brute, 1e-6)
    near_event = np.abs(log_times[:, None] - brute[np.isfinite(brute)]).min(axis=1, initial=1.0) < 1e-5
    for i, y in enumerate([solution(t) for t in np.exp(log_times)]):
        assert run.energy[i] == pytest.approx(reference.energy(y, beta, weights), abs=1e-6)
        assert run.order_parameter[i] == pytest.approx(reference.order_parameter(y, weights), abs=1e-6)
        margin = np.abs(reference.half_squared_distances(y) - golden.DELTA).min() > 1e-7
        if margin and not near_event[i]:
            assert run.pair_sync_fraction[i] == pytest.approx(
                reference.pair_sync_fraction(y, golden.DELTA, weights), abs=1e-6
            )
            assert run.cluster_count[i] == len(reference.components(y, golden.DELTA))


@pytest.mark.parametrize("delta", [1e-9, 1e-8, 1e-6, 1e-4, 0.02, 0.3, 1.5])
@NAMES
def test_log_time_to_clusters_is_the_last_moment_with_more(name: str, delta: float):
    """Dense sampling with a spanning tree, at cluster tolerances at which the count is far from monotone."""
    n, d, beta = 12, 3, 4.0
    for seed in range(3):
        x = reference.random_tokens(n, d, 30 + seed)
        full = simulate(x, beta, dynamics=name, tolerance=delta)
        end = 1.3 * max(math.exp(full.log_time_to_clusters[0]), 1e-2)
        field = reference.without_self_term(beta, reference.equal_weights(n), softmax=name == "sa")
        solution = reference.solve(field, x, end)
        brute = reference.log_time_to_clusters(solution, delta, samples=3000)
        assert_log_times(full.log_time_to_clusters, brute, 1e-6)
        # cut at a horizon in the middle: what has not happened is +inf
        horizon = 0.4 * end
        cut = simulate(x, beta, dynamics=name, tolerance=delta, horizon=horizon)
        at_horizon = len(reference.components(solution(horizon), delta))
        for k, log_time in enumerate(cut.log_time_to_clusters, start=1):
            assert (log_time == np.inf) == (at_horizon > k)
        settled = brute < math.log(horizon)
        assert_log_times(cut.log_time_to_clusters[settled], brute[settled], 1e-6)


def test_a_crowded_circle_starts_as_one_component_and_splits():
    """n=1024, d=2, β=16, δ=1e-3: counts 1, more, 1, and a finite time for clusters=1."""
    found = 0
    for seed in range(400):
        x = initial_tokens(0, 1024, 2, seed)
        theta = np.sort(np.arctan2(x[:, 1], x[:, 0]))
        gaps = np.diff(np.concatenate([theta, [theta[0] + 2 * np.pi]]))
        if np.sum(1 - np.cos(gaps) > golden.DELTA) > 1:
            continue
        found += 1
        log_times = np.array([-np.inf, *np.linspace(-2, 40, 200)])
        run = simulate(x, 16.0, log_times=log_times)
        assert run.outcome == DONE
        assert run.cluster_count[0] == 1
        assert run.cluster_count.max() >= 3
        assert run.cluster_count[log_times > run.log_time_to_clusters[0]].tolist().count(1) == np.sum(
            log_times > run.log_time_to_clusters[0]
        )
        assert np.isfinite(run.log_time_to_clusters[0])
        break
    assert found == 1


def plateaus(run: Trajectory) -> list[tuple[float, float, int]]:
    """Stays of at least two in log time at one cluster count: (entry, exit, k)."""
    log_times = run.log_time_to_clusters
    found = []
    for k in range(1, len(log_times)):
        entry, leave = log_times[k], log_times[k - 1]
        if np.isfinite(leave) and leave - max(entry, 0.0) > 6:
            found.append((max(entry, 0.0), float(leave), k + 1))
    return found


@NAMES
@pytest.mark.parametrize(("n", "d", "beta"), [(24, 2, 60.0), (24, 3, 100.0), (32, 2, 300.0)])
def test_plateau_energy_is_that_of_its_atoms(name: str, n: int, d: int, beta: float):
    """Σ mᵢ² + Σ mᵢmⱼ e^{-β(1-c_ij)} over the atoms; a merger adds exactly 2 mᵢmⱼ up to the exponentials."""
    weights, x = reference.random_weights(n, 1), reference.random_tokens(n, d, 1)
    first = simulate(x, beta, dynamics=name, weights=weights)
    stays = plateaus(first)
    assert stays
    log_times = np.sort([entry + f * (leave - entry) for entry, leave, _ in stays for f in (0.5, 0.8)])
    run = simulate(x, beta, dynamics=name, weights=weights, log_times=log_times)
    for y, energy, count, order in zip(
        run.tokens, run.energy, run.cluster_count, run.order_parameter, strict=True
    ):
        groups = [sorted(g) for g in reference.components(y, golden.DELTA)]
        assert count == len(groups)
        mass = np.array([weights[g].sum() for g in groups])
        centre = reference.normalise(np.array([weights[g] @ y[g] for g in groups]))
        assert mass.sum() == pytest.approx(1.0, abs=1e-14)
        assert energy == pytest.approx(reference.energy(centre, beta, mass), abs=1e-11)
        assert order == pytest.approx(np.linalg.norm(mass @ centre), abs=1e-11)
        if (
            reference.half_squared_distances(centre)[np.triu_indices(len(groups), 1)].min(initial=2.0) * beta
            > 40
        ):
            assert energy == pytest.approx(np.sum(mass**2), abs=1e-11)


def test_save_times_far_beyond_float64():
    """β=200, consensus near t = e^400 … e^1300: a staircase in log time that ends at one."""
    x = reference.random_tokens(32, 2, 0)
    last = simulate(x, 1000.0).log_time_to_clusters[0]
    assert last > 1000
    log_times = np.linspace(-3, 1.2 * last, 400)
    run = simulate(x, 1000.0, log_times=log_times)
    assert np.array_equal(run.log_times, log_times)
    assert np.isinf(run.times[-1])
    assert not np.any(np.isnan(run.times))
    assert np.all(np.diff(run.energy) >= -1e-12 * run.energy[1:])
    assert run.energy[-1] == pytest.approx(1.0, abs=1e-14)
    assert run.cluster_count[0] > 5
    for k in range(1, 32):
        late = log_times > run.log_time_to_clusters[k - 1]
        assert np.all(run.cluster_count[late] <= k)
        assert np.all(run.cluster_count[:1] > k) or run.log_time_to_clusters[k - 1] < -3
    alone = log_times > last + 40  # SA: chords shrink by e^-t after the crossing
    assert np.all(run.pair_sync_fraction[alone] == 1)
    assert np.all(run.order_parameter[alone] == pytest.approx(1, abs=1e-12))


def test_median_consensus_times_are_the_prototypes():
    """n=32, d=2, 64 seeds each. Ours and the prototype's median each scatter by four ranks (binomial), so the
    prototype's lies between our ranks 9 and 55 but for 6e-5 of all samples, at each β."""
    x = np.array([initial_tokens(0, 32, 2, seed) for seed in range(64)])
    for beta, median in golden.PROTOTYPE_MEDIANS.items():
        cells = observe_cells(
            x,
            np.full(64, float(beta)),
            dynamics=Dynamics("sa"),
            integrator=Adaptive(),
            log_times=np.array([]),
            log_horizon=np.inf,
            tolerance=golden.DELTA,
            variables=(),
            clusters_kept=1,
        )
        assert np.all(cells["outcome"] == DONE)
        ordered = np.sort(cells["log_time_to_clusters"][:, 0])
        assert ordered[8] < median < ordered[54]


@NAMES
@pytest.mark.parametrize(("n", "d", "beta"), [(10, 10, 3.0), (16, 2, 20.0), (9, 3, 80.0)])
def test_linkage_is_the_tree_of_mergers(name: str, n: int, d: int, beta: float):
    x = reference.random_tokens(n, d, 3)
    run = simulate(x, beta, dynamics=name)
    tree = run.linkage()
    assert tree.shape == (n - 1, 4)
    heights = tree[:, 2]
    assert np.all(np.diff(heights) >= 0)
    assert tree[-1, 3] == n
    # from the root down: the last moments with more than k = 1, 2, … clusters
    log_times = run.log_time_to_clusters[: n - 1]
    later = np.isfinite(log_times)
    assert (heights[::-1] + run.tree_origin)[later] == pytest.approx(log_times[later], abs=1e-9, rel=1e-12)
    assert np.all(heights[::-1][~later] == 0)  # together from the start
    if np.all(later) and log_times.min() >= 0:
        assert run.tree_origin == 0
    # cut anywhere between two heights, it gives the clusters of the tokens at that time
    shown = heights[np.concatenate([np.diff(heights) > 1e-3, [False]])] if n > 2 else heights[:1]
    middles = [h + run.tree_origin + 0.5 * (heights[heights > h].min() - h) for h in shown]
    saved = simulate(x, beta, dynamics=name, log_times=np.array(middles))
    usable = tree.copy()
    usable[:, 2] = np.maximum(np.arange(1, n), 0)  # heights as ranks: any linkage orders them so
    for middle, y in zip(middles, saved.tokens, strict=True):
        groups = reference.components(y, golden.DELTA)
        labels = fcluster(usable, t=np.sum(heights + run.tree_origin <= middle) + 0.5, criterion="distance")
        assert {frozenset(np.flatnonzero(labels == label)) for label in set(labels)} == {
            frozenset(g) for g in groups
        }


def test_partitions_are_the_clusters_from_each_change_on():
    run = simulate(reference.random_tokens(14, 2, 3), 30.0, tolerance=0.01)
    counts = np.array([len(set(labels)) for labels in run.partitions])
    assert run.change_log_times[0] == -np.inf
    assert np.all(np.diff(run.change_log_times) >= 0)
    assert np.all(np.diff(counts) != 0)
    for k in range(1, 15):
        more = np.flatnonzero(counts > k)  # the last of these stays ends at the next change
        expected = -np.inf if len(more) == 0 else run.change_log_times[more[-1] + 1]
        assert run.log_time_to_clusters[k - 1] == expected
    inside = np.concatenate([[-np.inf], (run.change_log_times[1:-1] + run.change_log_times[2:]) / 2])
    saved = simulate(reference.random_tokens(14, 2, 3), 30.0, tolerance=0.01, log_times=inside)
    for y, labels in zip(saved.tokens, run.partitions, strict=False):
        groups = {frozenset(g) for g in reference.components(y, 0.01)}
        assert {frozenset(np.flatnonzero(labels == label)) for label in set(labels)} == groups


@NAMES
def test_scipy_draws_the_linkage(name: str):
    """As a linkage in log time, also where t < 1 and its logarithm is negative (USA)."""
    tree = simulate(reference.random_tokens(12, 3, 3), 6.0, dynamics=name).linkage()
    assert is_valid_linkage(tree)
    drawn = dendrogram(tree, no_plot=True)
    assert sorted(drawn["leaves"]) == list(range(12))


def test_many_cells_are_the_cells_one_by_one():
    """Any batching gives each cell its own result to the last bit; more than k >= n clusters never are."""
    n, d = 8, 3
    x = np.array([initial_tokens(3, n, d, seed) for seed in range(5)])
    beta = np.array([0.0, 1.0, 7.5, 30.0, 400.0])
    log_times = np.array([-np.inf, *np.linspace(-4, 9, 20)])
    for name in ("sa", "usa"):
        many = observe_cells(
            x,
            beta,
            dynamics=Dynamics(name),
            integrator=Adaptive(),
            log_times=log_times,
            log_horizon=np.inf,
            tolerance=golden.DELTA,
            variables=TIME_RESOLVED,
            clusters_kept=11,
        )
        assert set(many) == {*TIME_RESOLVED, "log_time_to_clusters", "evaluations", "steps", "outcome"}
        assert many["log_time_to_clusters"].shape == (5, 11)
        assert np.all(many["log_time_to_clusters"][:, n - 1 :] == -np.inf)
        for i in range(5):
            one = simulate(x[i], float(beta[i]), dynamics=name, log_times=log_times)
            for variable in TIME_RESOLVED:
                assert many[variable][i] == pytest.approx(getattr(one, variable), abs=1e-13), variable
            assert many["log_time_to_clusters"][i, :n] == pytest.approx(one.log_time_to_clusters, abs=1e-12)
        reverse = observe_cells(
            x[::-1],
            beta[::-1],
            dynamics=Dynamics(name),
            integrator=Adaptive(),
            log_times=log_times,
            log_horizon=np.inf,
            tolerance=golden.DELTA,
            variables=TIME_RESOLVED,
            clusters_kept=11,
        )
        for key, values in many.items():
            assert reverse[key][::-1].tobytes() == values.tobytes(), key


def test_default_tolerance_is_good_to_1e_6_in_log_time():
    """Against a hundred times tighter tolerances, in at least 99 of 100 random cells, for every k.

    What is left is mostly the first-order effect of a coalescence (chord 1e-6) just before a crossing."""
    rng = np.random.default_rng(6)
    worst = []
    for k in range(100):
        n, d = int(2 ** rng.uniform(1, 5.5)), int(rng.integers(2, 7))
        beta, name = float(10 ** rng.uniform(-1, 3)), ("sa", "usa")[k % 2]
        x = reference.random_tokens(n, d, k)
        found = simulate(x, beta, dynamics=name).log_time_to_clusters
        tight = Adaptive(tolerance=1e-10, coalescence=1e-8)
        expected = simulate(x, beta, dynamics=name, integrator=tight).log_time_to_clusters
        finite = np.isfinite(expected)
        assert np.array_equal(found[~finite], expected[~finite])
        error = np.abs(found[finite] - expected[finite]) / np.maximum(1, np.abs(expected[finite]))
        worst.append(error.max(initial=0.0))
    assert np.sum(np.array(worst) > 1e-6) <= 1
    assert np.median(worst) < 1e-8
