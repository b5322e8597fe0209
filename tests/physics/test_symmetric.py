"""Unstable but invariant states stay and are reported; perturbed ones leave at the predicted rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline import simulate
from pipeline.integrate import Adaptive
from pipeline.observe import DONE, OUTCOMES
from tests import reference

NAMES = pytest.mark.parametrize("name", ["sa", "usa"])
BETAS = pytest.mark.parametrize("beta", [0.0, 1.0, 16.0, 1000.0])


@NAMES
@BETAS
@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("copies", [(1, 1), (2, 1), (3, 3)])
def test_antipodal_tokens_stay(name: str, beta: float, d: int, copies: tuple[int, int]):
    """{x, -x} with x arbitrary: -x is exact in floating point, so the state is symmetric there too."""
    for seed in range(5):
        x = reference.random_tokens(1, d, seed)
        tokens = np.repeat(np.concatenate([x, -x]), copies, axis=0)
        run = simulate(tokens, beta, dynamics=name, times=[0.0, 1.0, 1e6])
        assert run.outcome == DONE
        assert run.log_time_to_clusters.tolist() == [np.inf] + [-np.inf] * (len(tokens) - 1)
        assert run.cluster_count.tolist() == [2, 2, 2]
        assert run.evaluations < 100
        assert run.tokens == pytest.approx(np.stack([tokens] * 3), abs=1e-15)


@NAMES
@BETAS
@pytest.mark.parametrize("d", [2, 3, 5])
def test_cross_polytopes_stay(name: str, beta: float, d: int):
    tokens = np.concatenate([np.eye(d), -np.eye(d)])
    for horizon in ("consensus", 50.0):
        run = simulate(tokens, beta, dynamics=name, times=[0.0, 40.0], horizon=horizon)
        assert run.outcome == DONE
        assert np.all(run.log_time_to_clusters[: 2 * d - 1] == np.inf)
        assert run.log_time_to_clusters[-1] == -np.inf
        assert run.cluster_count.tolist() == [2 * d, 2 * d]
        assert run.evaluations < 100


@NAMES
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize(("p", "d"), [(0.5, 2), (0.25, 5)])
def test_perturbed_antipodal_pair_leaves_at_the_unstable_rate(name: str, beta: float, p: float, d: int):
    """Defect 1e-9 times e^{λt}, λ = q e^{-β}/Z_A + p e^{-β}/Z_B (SA), e^{-β} (USA), within 1 percent."""
    q = 1 - p
    if name == "sa":
        log_rate = -2 * beta + math.log(q / (p + q * math.exp(-2 * beta)) + p / (q + p * math.exp(-2 * beta)))
    else:
        log_rate = -beta
    if p == 0.5 and name == "sa":
        assert log_rate == pytest.approx(math.log(2) - 2 * beta - math.log1p(math.exp(-2 * beta)))
    x = np.zeros((2, d))
    x[0, 0], x[1, 0], x[1, 1] = 1.0, -1.0, 1e-9
    growth = np.array([4.0, 8.0, 14.0])
    run = simulate(x, beta, dynamics=name, weights=[p, q], log_times=log_rate * -1 + np.log(growth))
    assert run.outcome == DONE
    defect = np.linalg.norm(run.tokens[:, 0] + run.tokens[:, 1], axis=1)
    assert np.log(defect / 1e-9) == pytest.approx(growth, rel=0.01)
    assert np.diff(np.log(defect)) == pytest.approx(np.diff(growth), rel=0.01)
    # the pair then meets: e-folds up to u = -1 + 1e-10 (chord 1.4e-5), the quadrature from there
    linear = math.log(math.log(math.sqrt(2e-10) / 1e-9)) - log_rate
    rest = reference.two_cluster_log_time(beta, -1 + 1e-10, 1e-3, p, q, name == "sa")
    assert run.log_time_to_clusters[0] == pytest.approx(np.logaddexp(linear, rest), abs=1e-5)


@NAMES
def test_exhausted_evaluations_are_a_failure_with_a_reason(name: str):
    run = simulate(
        reference.random_tokens(32, 2, 0), 64.0, dynamics=name, integrator=Adaptive(max_evaluations=150)
    )
    assert run.outcome != DONE
    assert "max_evaluations" in OUTCOMES[run.outcome]
    assert "max_evaluations" in run.message
    assert run.evaluations <= 150 + 20  # the step under way may be finished


def test_outcome_zero_is_done():
    assert DONE == 0
    assert DONE in OUTCOMES
    run = simulate(np.eye(2), 1.0)
    assert run.outcome == DONE
