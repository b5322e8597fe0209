"""Initial tokens: the published formula to the bit, and the law of uniform points.

The statistical tests compare a mean of independent numbers with its exact value in units of its own standard
error and allow 5: one false alarm in 1.7 million for each comparison; seeds are fixed besides.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln, ive

from pipeline.sphere import initial_tokens
from tests import reference


@pytest.mark.parametrize(
    ("root", "n", "d", "seed"), [(0, 2, 2, 0), (20260101, 32, 8, 5), (7, 5, 1024, 2047), (1, 64, 3, 10**6)]
)
def test_initial_tokens_are_the_published_formula_to_the_bit(root: int, n: int, d: int, seed: int):
    stream = np.random.Generator(np.random.Philox(np.random.SeedSequence(root, spawn_key=(n, d, seed))))
    gaussian = stream.standard_normal((n, d))
    expected = gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True)
    found = initial_tokens(root, n, d, seed)
    assert found.dtype == np.float64
    assert found.shape == (n, d)
    assert found.tobytes() == expected.tobytes()


def test_other_keys_are_other_tokens():
    draws = {
        initial_tokens(root, n, d, seed)[0, :2].tobytes()
        for root in (0, 1)
        for n in (2, 3)
        for d in (2, 3)
        for seed in range(5)
    }
    assert len(draws) == 40


def z_score(sample: np.ndarray, expected: float) -> float:
    return float((sample.mean() - expected) / (sample.std(ddof=1) / math.sqrt(len(sample))))


@pytest.mark.parametrize(("n", "d", "beta"), [(4, 2, 1.0), (8, 3, 5.0), (16, 8, 9.0), (3, 40, 20.0)])
def test_mean_energy_of_uniform_tokens(n: int, d: int, beta: float):
    """E[energy] = 1/n + (1-1/n) a₀ e^{-β}, a₀ = Γ(d/2)(2/β)^ν I_ν(β), ν = d/2-1."""
    nu = d / 2 - 1
    a0 = math.exp(gammaln(d / 2) + nu * math.log(2 / beta)) * ive(nu, beta)
    weights = reference.equal_weights(n)
    sample = np.array(
        [reference.energy(initial_tokens(1, n, d, seed), beta, weights) for seed in range(3000)]
    )
    assert abs(z_score(sample, 1 / n + (1 - 1 / n) * a0)) < 5


@pytest.mark.parametrize(("n", "d"), [(4, 2), (6, 5), (3, 64)])
def test_mean_square_inner_product_is_one_over_d(n: int, d: int):
    i, j = np.triu_indices(n, 1)
    draws = (initial_tokens(2, n, d, seed) for seed in range(3000))
    sample = np.array([np.mean((x @ x.T)[i, j] ** 2) for x in draws])
    assert abs(z_score(sample, 1 / d)) < 5


@pytest.mark.parametrize(("n", "probability"), [(3, 3 / 4), (6, 6 / 32)])
def test_hemisphere_starts_are_as_frequent_as_wendel_says(n: int, probability: float):
    """On the circle: the largest gap exceeds a half turn with probability n / 2^{n-1}."""
    inside = []
    for seed in range(4000):
        x = initial_tokens(3, n, 2, seed)
        theta = np.sort(np.arctan2(x[:, 1], x[:, 0]))
        inside.append(np.diff(np.concatenate([theta, [theta[0] + 2 * np.pi]])).max() > np.pi)
    assert abs(np.mean(inside) - probability) < 5 * math.sqrt(probability * (1 - probability) / 4000)
