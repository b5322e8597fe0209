"""Spectral sums: against sums over pairs, a textbook, exact growth rates and conservation laws."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.special import ive

from pipeline import simulate
from pipeline.dynamics import Dynamics
from pipeline.integrate import DONE, MANY, OUTCOMES, Adaptive, Layers, crowd
from pipeline.integrate.crowd import FEW
from pipeline.observe import TIME_RESOLVED, observe_cells
from pipeline.sphere import circle, discs, initial_tokens, spectral, surface
from pipeline.sphere.crowd import Crowd
from tests import reference

NAMES = pytest.mark.parametrize("name", ["sa", "usa"])


def textbook(x: np.ndarray, m: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights and forces with the self-term in the weights, by their definitions."""
    e = m * np.exp(-beta * np.maximum(0, 1 - x @ x.T))
    return e.sum(axis=1), reference.tangent(x, e @ x)


def observed(
    tokens: np.ndarray, beta: float, method: Adaptive, *, name: str, end: float, kept: int = 16
) -> Any:
    return observe_cells(
        tokens[None],
        np.array([beta]),
        dynamics=Dynamics(name),
        integrator=method,
        log_times=np.array([-np.inf, *np.log(end * np.array([0.1, 0.2, 0.5, 0.8, 1.0]))]),
        log_horizon=math.log(end),
        tolerance=1e-3,
        variables=TIME_RESOLVED,
        clusters_kept=kept,
    )


@pytest.mark.parametrize("epsilon", [1e-6, 1e-9, 2e-13])
@pytest.mark.parametrize("beta", [0.0, 1e-6, 0.5, 1.0, 20.0, 200.0, 2000.0])
def test_weights_and_forces_on_the_circle_are_within_the_bound(beta: float, epsilon: float) -> None:
    angles = np.sort(np.random.default_rng(0).uniform(0, 2 * np.pi, 300))
    m = reference.random_weights(300, 1)
    weight, force = textbook(reference.circle(angles), m, beta)
    found, turn = spectral.circle_sums(angles, m, beta, epsilon)
    allowed = spectral.ERROR * epsilon
    assert np.abs(found - weight).max() <= allowed
    tangents = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    assert np.abs(turn[:, None] * tangents - force).max() <= allowed


@pytest.mark.parametrize("epsilon", [1e-6, 1e-9, 2e-13])
@pytest.mark.parametrize("beta", [0.0, 1e-6, 0.5, 1.0, 20.0, 200.0, 2000.0])
def test_weights_and_forces_on_the_sphere_are_within_the_bound(beta: float, epsilon: float) -> None:
    x = reference.random_tokens(300, 3, 0)
    x[:4] = [[0, 0, 1], [0, 0, -1], [1, 0, 0], [-1, 0, 0]]
    m = reference.random_weights(300, 1)
    weight, force = textbook(x, m, beta)
    found, vectors = spectral.sphere_sums(np.ascontiguousarray(x.T), m, beta, epsilon)
    allowed = spectral.ERROR * epsilon
    assert np.abs(found - weight).max() <= allowed
    assert np.abs(vectors.T - force).max() <= allowed


def test_the_bound_holds_when_all_mass_is_in_one_place() -> None:
    angles, m = np.full(200, 1.0), np.full(200, 1 / 200)
    weight, force = spectral.circle_sums(angles, m, 50.0, 1e-12)
    assert np.abs(weight - 1).max() <= spectral.ERROR * 1e-12
    assert np.abs(force).max() <= spectral.ERROR * 1e-12
    x = np.repeat(np.array([[0.6], [0.0], [0.8]]), 200, axis=1)
    weight, vectors = spectral.sphere_sums(x, m, 50.0, 1e-12)
    assert np.abs(weight - 1).max() <= spectral.ERROR * 1e-12
    assert np.abs(vectors).max() <= spectral.ERROR * 1e-12


@pytest.mark.parametrize("delta", [1e-5, 1e-3, 1e-2, 0.1, 0.5, 1.5])
@pytest.mark.parametrize("spread", [0.0, 0.03, 0.3])
def test_clusters_and_pairs_of_a_crowd_are_those_of_brute_force(delta: float, spread: float) -> None:
    rng = np.random.default_rng(3)
    m = rng.uniform(0.2, 1, 250)
    angles = np.sort(rng.normal(1, spread, 250) if spread else rng.uniform(0, 2 * np.pi, 250))
    x = reference.random_tokens(250, 3, 0)
    if spread:
        x = reference.normalise(x[rng.integers(0, 5, 250)] + spread * rng.standard_normal((250, 3)))
    rows = np.ascontiguousarray(x.T)
    for y, clusters, mass in (
        (
            reference.circle(angles),
            circle.clusters(angles, circle.wedge(delta)),
            circle.mass_together(angles, m, circle.wedge(delta)),
        ),
        (x, surface.clusters(rows, delta), discs.mass_together(rows, m, delta)),
    ):
        h = reference.half_squared_distances(y)
        np.fill_diagonal(h, 9)
        components = sorted(sorted(component) for component in reference.components(y, delta))
        assert clusters[0] == len(components)
        assert clusters[1].tolist() == [[i in c for c in components].index(True) for i in range(250)]
        assert mass == pytest.approx(m @ (h <= delta) @ m, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-5, 1e-3, 1e-2, 0.1, 0.5])
@pytest.mark.parametrize("spread", [0.0, 0.03, 0.3])
@pytest.mark.parametrize("labelled", ["by themselves", "anyhow", "as one"])
def test_the_closest_of_different_clusters_are_found(delta: float, spread: float, labelled: str) -> None:
    rng = np.random.default_rng(4)
    angles = np.sort(rng.normal(1, spread, 250) if spread else rng.uniform(0, 2 * np.pi, 250))
    x = reference.random_tokens(250, 3, 0)
    if spread:
        x = reference.normalise(x[rng.integers(0, 5, 250)] + spread * rng.standard_normal((250, 3)))
    rows = np.ascontiguousarray(x.T)
    wedge = circle.wedge(delta)
    anyhow = np.zeros(250, np.int64) if labelled == "as one" else rng.integers(0, 3, 250)
    for y, labels, meeting in (
        (
            reference.circle(angles),
            circle.clusters(angles, 0.3 * wedge)[1],
            lambda labels: circle.meeting(angles, labels, wedge),
        ),
        (x, surface.clusters(rows, 0.1 * delta)[1], lambda labels: surface.meeting(rows, labels, delta)),
    ):
        if labelled != "by themselves":
            labels = anyhow
        h = reference.half_squared_distances(y)
        apart = np.where(labels[:, None] != labels[None, :], h, 9)
        closest = apart.min()
        found = meeting(labels)
        if closest > delta:
            assert found is None
        else:
            assert found is not None
            assert labels[found[0]] != labels[found[1]]
            assert h[found] == pytest.approx(closest, rel=1e-9)


def test_coalescing_keeps_masses_and_members() -> None:
    rng = np.random.default_rng(5)
    places = reference.random_tokens(20, 3, 1)
    x = np.ascontiguousarray(reference.normalise(places[rng.integers(0, 20, 500)]).T)
    mass, squares, atom = np.full(500, 0.002), np.full(500, 4e-6), np.empty(500, np.int64)
    before = x.copy()
    left = surface.coalesce(x, mass, squares, atom, 1e-6, 0.3)
    assert left == 20
    assert mass[:left].sum() == pytest.approx(1)
    assert np.abs(x[:, atom] - before).max() < 1e-15
    angles = np.sort(np.repeat(rng.uniform(0, 6, 20), 25))
    mass, squares = np.full(500, 0.002), np.full(500, 4e-6)
    moved = angles.copy()
    left = circle.coalesce(moved, mass, squares, atom, 1e-6)
    assert left == 20
    assert np.allclose(mass[:left], 0.05)
    assert np.array_equal(moved[atom], angles)


@NAMES
@pytest.mark.parametrize("d", [2, 3])
def test_a_trajectory_by_spectral_sums_is_that_by_sums_over_pairs(d: int, name: str) -> None:
    tokens, beta = initial_tokens(1, 1400, d, 0), 8.0
    end = 14.0 if name == "sa" else 500 * math.exp(-beta)
    fast = observed(tokens, beta, Adaptive(sum="spectral"), name=name, end=end)
    slow = observed(tokens, beta, Adaptive(sum="direct"), name=name, end=end)
    assert fast["outcome"] == slow["outcome"] == DONE
    assert np.array_equal(fast["cluster_count"], slow["cluster_count"])
    for variable in ("pair_sync_fraction", "energy", "order_parameter"):
        assert np.abs(fast[variable] - slow[variable]).max() < 1e-8
    times, expected = fast["log_time_to_clusters"], slow["log_time_to_clusters"]
    finite = np.isfinite(expected)
    assert finite.any()
    assert np.array_equal(times[~finite], expected[~finite])
    assert np.abs(times[finite] - expected[finite]).max() < 1e-6


@pytest.mark.parametrize(("d", "n", "seed", "end"), [(2, 1325, 9, 12.0), (3, 1200, 0, 12.0)])
def test_clusters_that_part_while_others_meet_are_dated_like_those_of_pairs(
    d: int, n: int, seed: int, end: float
) -> None:
    """At beta = 0 tokens behind the mean part for a while, so the number of clusters rises in between."""
    fast, slow = (
        observed(initial_tokens(3, n, d, seed), 0.0, Adaptive(sum=kind), name="sa", end=end, kept=40)
        for kind in ("spectral", "direct")
    )
    times, expected = fast["log_time_to_clusters"], slow["log_time_to_clusters"]
    finite = np.isfinite(expected)
    assert finite.sum() >= 10
    assert np.array_equal(times[~finite], expected[~finite])
    assert np.abs(times[finite] - expected[finite]).max() < 1e-6


@pytest.mark.parametrize("d", [2, 3])
def test_the_few_atoms_left_go_on_to_consensus(d: int) -> None:
    tokens = initial_tokens(0, 1200, d, 1)
    results = [
        simulate(tokens, 4.0, integrator=Adaptive(sum=kind), log_times=[0.0, 2.0, 200.0])
        for kind in ("spectral", "direct")
    ]
    fast, slow = results
    assert fast.outcome == DONE
    assert np.abs(fast.log_time_to_clusters[:8] - slow.log_time_to_clusters[:8]).max() < 1e-6
    assert np.abs(fast.tokens - slow.tokens)[:2].max() < 1e-5
    assert fast.order_parameter[-1] == pytest.approx(1, abs=1e-12)
    with pytest.raises(ValueError, match="linkage: got a trajectory by spectral sums"):
        fast.linkage()


@NAMES
@pytest.mark.parametrize("k", [3, 6])
def test_a_mode_of_uniform_tokens_grows_at_the_exact_rate(k: int, name: str) -> None:
    """lambda_k = k² I_k / (beta I_0) for SA, k² I_k / beta for USA."""
    n, beta = 2048, 20.0
    grid = 2 * np.pi * np.arange(n) / n
    rate = k * k * ive(k, beta) / beta / (ive(0, beta) if name == "sa" else 1)
    clock = 1.0 if name == "sa" else math.exp(-beta)
    times = clock * np.linspace(0, 1 / rate, 5)
    run = simulate(
        reference.circle(grid + 1e-6 * np.sin(k * grid)),
        beta,
        dynamics=name,
        times=times,
        horizon=float(times[-1]),
        integrator=Adaptive(tolerance=1e-11, coalescence=1e-9, sum="spectral"),
    )
    moved = np.angle(np.exp(1j * (np.arctan2(run.tokens[:, :, 1], run.tokens[:, :, 0]) - grid)))
    amplitude = 2 * np.mean(moved * np.sin(k * grid), axis=1)
    fitted = np.polyfit(times / clock, np.log(amplitude), 1)[0]
    assert fitted == pytest.approx(rate, rel=1e-5)


def test_usa_conserves_the_mean_angle_and_the_energy_never_falls() -> None:
    n, beta = 3000, 10.0
    angles = np.sort(np.random.default_rng(2).uniform(0.1, 2.9, n))  # in a half circle: no cut is crossed
    end = 60 * math.exp(-beta)
    run = simulate(
        reference.circle(angles),
        beta,
        dynamics="usa",
        times=np.linspace(0, end, 12),
        horizon=end,
        integrator=Adaptive(sum="spectral"),
    )
    moved = np.arctan2(run.tokens[:, :, 1], run.tokens[:, :, 0]).mean(axis=1)
    assert np.abs(moved - angles.mean()).max() < 1e-8
    assert (np.diff(run.energy) >= 0).all()


def test_a_hundred_thousand_tokens_reach_the_first_plateau() -> None:
    found = observed(initial_tokens(0, 10**5, 2, 0), 20.0, Adaptive(), name="sa", end=25.0, kept=64)
    assert found["outcome"] == DONE
    assert 3 <= found["cluster_count"][0, -1] <= 7  # the fastest mode has six
    assert found["energy"][0, -1] == pytest.approx(found["pair_sync_fraction"][0, -1], abs=1e-3)


def test_the_rule_is_one_of_parameters_and_refuses_what_does_not_exist() -> None:
    auto, forced, pairs = Adaptive(), Adaptive(sum="spectral"), Adaptive(sum="direct")
    assert auto.spectral(MANY, 2, 20.0, True, 1e-3)
    assert auto.spectral(MANY, 3, 20.0, True, 1e-3)
    assert not auto.spectral(FEW + 1, 2, 20.0, True, 1e-3)
    assert not auto.spectral(MANY, 4, 20.0, True, 1e-3)
    assert not auto.spectral(MANY, 2, 20.0, False, 1e-3)
    assert not pairs.spectral(MANY, 2, 20.0, True, 1e-3)
    assert not Adaptive(tolerance=1e-12).spectral(MANY, 2, 20.0, True, 1e-3)
    assert not Adaptive(tolerance=1e-10).spectral(MANY, 2, 20.0, True, 1e-9)
    assert forced.spectral(FEW + 1, 2, 20.0, True, 1e-3)
    for n, d, symmetric in ((FEW, 2, True), (MANY, 4, True), (MANY, 2, False)):
        with pytest.raises(ValueError, match=r"integrator\.sum: got spectral"):
            forced.spectral(n, d, 20.0, symmetric, 1e-3)
    with pytest.raises(ValueError, match=r"grid\.n: got 32769"):
        pairs.spectral(MANY + 1, 2, 20.0, True, 1e-3)
    with pytest.raises(ValueError, match=r"integrator\.sum: got 'fast'; allowed: auto, direct, spectral"):
        Adaptive(sum="fast")
    with pytest.raises(ValueError, match=r"grid\.n: got"):
        simulate(np.eye(2)[np.zeros(MANY + 1, int)], 1.0, integrator=Layers(), horizon=1.0)


def test_a_notebook_holds_more_tokens_than_pairs_can_be_made_of() -> None:
    run = simulate(initial_tokens(0, 3 * MANY, 2, 0), 20.0, times=[0.0, 0.01], horizon=0.01)
    assert run.outcome == DONE
    assert run.tokens.shape == (2, 3 * MANY, 2)
    assert run.energy[1] > run.energy[0]


@pytest.mark.parametrize("d", [2, 3])
def test_threads_of_a_sum_change_no_more_than_the_last_digits(d: int) -> None:
    tokens = initial_tokens(0, 20_000, d, 0)
    one, two = (
        observed(tokens, 8.0, Adaptive(sum_threads=threads), name="sa", end=5.0) for threads in (1, 2)
    )
    assert one["outcome"] == two["outcome"] == DONE
    for variable in ("energy", "order_parameter"):
        assert np.abs(one[variable] - two[variable]).max() < 1e-9
    with pytest.raises(ValueError, match=r"integrator\.sum_threads: got 0; allowed: integers >= 1"):
        Adaptive(sum_threads=0)


@pytest.mark.parametrize(("n", "outcome"), [(2000, crowd.HANDED_OVER), (MANY + 1000, crowd.INACCURATE)])
def test_sums_short_of_the_tolerance_are_handed_over_or_admitted(n: int, outcome: int) -> None:
    def coarse(atoms: Any, place: np.ndarray, out: np.ndarray) -> float:
        return 1e-7

    tokens = reference.circle(np.linspace(0, 6, n))
    reached = crowd.follow(
        *Crowd.of(tokens, np.ones(n)),
        crowd.Task(
            velocity=coarse,
            tolerance=1e-8,
            chord=1e-6,
            max_evaluations=100,
            delta=1e-3,
            clusters_kept=4,
            log_times=np.array([]),
            log_horizon=0.0,
            offset=0.0,
            steepness=1.0,
            on_save=lambda *_: None,
            on_clusters=lambda *_: None,
        ),
    )
    assert reached.outcome == outcome
    assert crowd.INACCURATE in OUTCOMES


def test_a_sum_gets_its_threads_on_a_worker_that_allows_openmp_one():
    script = (
        "import ducc0, numpy as np\n"
        "from pipeline.sphere import spectral\n"
        "x = np.eye(3)\n"
        "spectral.sphere_sums(x, np.full(3, 1 / 3), 2.0, 1e-12, 3)\n"
        "assert ducc0.misc.thread_pool_size() >= 3, ducc0.misc.thread_pool_size()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_circle_is_summed_without_a_word_on_more_threads_than_openmp_allows():
    script = (
        "import numpy as np\n"
        "from pipeline.sphere import spectral\n"
        "spectral.circle_sums(np.array([0.0, 1.0]), np.full(2, 0.5), 2.0, 1e-12, 2)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
