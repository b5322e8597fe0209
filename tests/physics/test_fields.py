"""The package against textbook formulae: velocities, flows with and without matrices, weights, layers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pipeline import simulate
from pipeline.dynamics import Dynamics, Matrix
from pipeline.integrate import Adaptive, Layers
from tests import reference
from tests.physics import golden

NAMES = pytest.mark.parametrize("name", ["sa", "usa"])


def from_file(directory: Path, matrix: np.ndarray | None, label: str) -> Matrix:
    if matrix is None:
        return Matrix()
    path = directory / f"{label}.npy"
    np.save(path, matrix)
    return Matrix(kind="file", path=str(path))


def dynamics_with(
    name: str,
    directory: Path,
    query: np.ndarray | None = None,
    key: np.ndarray | None = None,
    value: np.ndarray | None = None,
) -> Dynamics:
    return Dynamics(
        name,
        query=from_file(directory, query, "query"),
        key=from_file(directory, key, "key"),
        value=from_file(directory, value, "value"),
    )


def velocity_through_layers(
    x: np.ndarray, beta: float, dynamics: Dynamics, weights: np.ndarray
) -> np.ndarray:
    """The tangent velocity without access to the field.

    One layer of step η moves x by r = η v/(1+η⟨x,A⟩) in the tangent plane, so 1/|r| = (1/η + ⟨x,A⟩)/|v| and
    two steps give |v| exactly, whatever ⟨x,A⟩ is."""
    moved = []
    for step in (0.05, 0.1):
        run = simulate(
            x,
            beta,
            dynamics=dynamics,
            weights=weights,
            times=[step],
            horizon=step,
            integrator=Layers(step=step),
        )
        y = run.tokens[0]
        moved.append(y / np.sum(x * y, axis=1, keepdims=True) - x)
    inverse = [1 / np.linalg.norm(r, axis=1) for r in moved]
    speed = (1 / 0.05 - 1 / 0.1) / (inverse[0] - inverse[1])
    return speed[:, None] * reference.normalise(moved[1])


@pytest.mark.parametrize("key", list(golden.G9_VELOCITY), ids=str)
def test_g9_velocities(key: tuple[str, int, bool], tmp_path: Path):
    name, token, general = key
    dynamics, weights = Dynamics(name), reference.equal_weights(6)
    if general:
        dynamics = dynamics_with(name, tmp_path, golden.G9_QUERY, golden.G9_KEY, golden.G9_VALUE)
        weights = golden.G9_WEIGHTS
    found = velocity_through_layers(golden.G9_TOKENS, golden.G9_BETA, dynamics, weights)
    assert found[token] == pytest.approx(golden.G9_VELOCITY[key], abs=1e-12)


def test_g9_energies():
    unit = math.exp(golden.G9_BETA) / (2 * golden.G9_BETA)
    for weights, expected in ((None, golden.G9_ENERGY_EQUAL), (golden.G9_WEIGHTS, golden.G9_ENERGY_WEIGHTED)):
        run = simulate(golden.G9_TOKENS, golden.G9_BETA, weights=weights, times=[0.0], horizon=0.1)
        assert unit * run.energy[0] == pytest.approx(expected, abs=2e-15)


@NAMES
def test_g9_flow(name: str, tight: Adaptive):
    rows = np.array(golden.G9_FLOW[name])
    run = simulate(
        golden.G9_TOKENS, golden.G9_BETA, dynamics=name, times=rows[:, 0], horizon=2.5, integrator=tight
    )
    unit = math.exp(golden.G9_BETA) / (2 * golden.G9_BETA)
    gram = run.tokens @ run.tokens.transpose(0, 2, 1)
    found = np.stack([unit * run.energy, gram[:, 0, 1], gram[:, 4, 5]], axis=1)
    assert np.abs(found - rows[:, 1:]).max() < 2e-10


def random_cells() -> list[tuple[str, int, int, float, int]]:
    rng = np.random.default_rng(20)
    return [
        (name, int(rng.integers(2, 25)), int(rng.integers(2, 41)), round(float(rng.uniform(0, 9)), 3), seed)
        for seed in range(8)
        for name in ("sa", "usa")
    ]


@pytest.mark.parametrize(("name", "n", "d", "beta", "seed"), random_cells())
def test_random_cells_agree_with_dop853_on_the_textbook_field(
    name: str, n: int, d: int, beta: float, seed: int
):
    """At the default tolerance: tokens and observables to 1e-6 up to t = 30 (SA) and 1 (USA)."""
    end = 30.0 if name == "sa" else 1.0
    times = end * np.array([0.013, 0.1, 0.31, 0.6, 1.0])
    weights = reference.random_weights(n, seed) if seed % 2 else reference.equal_weights(n)
    x = reference.random_tokens(n, d, seed)
    run = simulate(x, beta, dynamics=name, weights=weights, times=times, horizon=end)
    expected = reference.tokens_at(reference.textbook(beta, weights, softmax=name == "sa"), x, times)
    assert run.outcome == 0
    assert np.abs(run.tokens - expected).max() < 1e-6
    energy = [reference.energy(y, beta, weights) for y in expected]
    order = [reference.order_parameter(y, weights) for y in expected]
    assert run.energy == pytest.approx(energy, abs=1e-6)
    assert run.order_parameter == pytest.approx(order, abs=1e-6)


@NAMES
@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("value", ["identity", "general"])
def test_general_matrices_agree_with_dop853(name: str, d: int, value: str, tmp_path: Path):
    rng = np.random.default_rng(d)
    query, key, v = (rng.standard_normal((d, d)) / math.sqrt(d) for _ in range(3))
    matrices = {"query": query, "key": key, "value": v if value == "general" else None}
    weights, x = reference.random_weights(7, d), reference.random_tokens(7, d, d)
    times = np.array([0.3, 1.0, 2.5])
    run = simulate(
        x,
        3.0,
        dynamics=dynamics_with(name, tmp_path, **matrices),
        weights=weights,
        times=times,
        horizon=2.5,
        integrator=Adaptive(tolerance=1e-11),
    )
    expected = reference.tokens_at(
        reference.textbook(3.0, weights, softmax=name == "sa", **matrices), x, times
    )
    assert run.outcome == 0
    assert np.abs(run.tokens - expected).max() < 1e-6  # coalescence may move a token by half of its distance


@NAMES
def test_diagonal_matrices_are_the_matrices_they_say(name: str):
    entries = ((1.5, 0.5, 1.0), (0.3, 2.0, 1.0), (1.0, -0.5, 0.7))
    dynamics = Dynamics(name, *(Matrix(kind="diagonal", diagonal=row) for row in entries))
    query, key, value = (np.diag(row) for row in entries)
    weights, x = reference.random_weights(5, 0), reference.random_tokens(5, 3, 0)
    found = velocity_through_layers(x, 2.0, dynamics, weights)
    field = reference.textbook(2.0, weights, softmax=name == "sa", query=query, key=key, value=value)
    assert found == pytest.approx(field(x), abs=1e-12)


@NAMES
def test_consensus_under_general_keys_and_queries(name: str, tmp_path: Path):
    """V=I: tokens still meet, whatever Q and K, and all events are those of brute force."""
    rng = np.random.default_rng(4)
    query, key = rng.standard_normal((2, 3, 3)) / math.sqrt(3)
    dynamics = dynamics_with(name, tmp_path, query, key)
    assert dynamics.reaches_consensus
    weights, x = reference.random_weights(6, 4), reference.random_tokens(6, 3, 4)
    run = simulate(x, 2.0, dynamics=dynamics, weights=weights, integrator=Adaptive(tolerance=1e-11))
    end = 1.5 * math.exp(run.log_time_to_clusters[0])
    field = reference.textbook(2.0, weights, softmax=name == "sa", query=query, key=key)
    brute = reference.log_time_to_clusters(reference.solve(field, x, end, rtol=1e-12), golden.DELTA)
    assert run.log_time_to_clusters == pytest.approx(brute, abs=1e-6)


def test_consensus_is_refused_where_it_is_not_promised():
    dynamics = Dynamics("sa", value=Matrix(kind="diagonal", diagonal=(1.0, 2.0)))
    assert not dynamics.reaches_consensus
    with pytest.raises(ValueError, match=r"horizon"):
        simulate(reference.random_tokens(4, 2, 0), 1.0, dynamics=dynamics)


def test_symmetric_value_matrix_makes_usa_a_gradient_ascent(tmp_path: Path):
    """A = QᵀK = V symmetric: Σ mᵢmⱼ e^{β xᵢᵀA xⱼ} never decreases under USA, nor increases for V=-A."""
    rng = np.random.default_rng(2)
    g = rng.standard_normal((3, 3))
    a = (g + g.T) / 2
    weights, x = reference.random_weights(8, 2), reference.random_tokens(8, 3, 2)
    for sign in (1, -1):
        (tmp_path / str(sign)).mkdir()
        dynamics = dynamics_with("usa", tmp_path / str(sign), key=a, value=sign * a)
        run = simulate(
            x,
            1.5,
            dynamics=dynamics,
            weights=weights,
            times=np.linspace(0, 3, 60),
            horizon=3.0,
            integrator=Adaptive(tolerance=1e-11),
        )
        logits = 1.5 * np.einsum("tik,kl,tjl->tij", run.tokens, a, run.tokens)
        energy = np.einsum("i,tij,j->t", weights, np.exp(logits), weights)
        assert np.all(sign * np.diff(energy) > -1e-9 * energy[1:])


@NAMES
@pytest.mark.parametrize(("n", "d", "beta"), [(16, 2, 1.0), (16, 8, 6.0), (12, 30, 3.0)])
def test_layers_are_the_ten_line_loop(name: str, n: int, d: int, beta: float):
    step, count = 0.1, 300
    if name == "usa":  # the largest step that the paper's programs take
        step, count = 0.1 / max(math.sqrt(beta) * math.exp(beta - 0.5), 1.0), 100
    x = reference.random_tokens(n, d, 8)
    expected = reference.layers(x, beta, step, count, softmax=name == "sa")
    times = step * np.arange(count + 1)
    run = simulate(x, beta, dynamics=name, times=times, horizon=times[-1], integrator=Layers(step=step))
    assert np.abs(run.tokens - expected).max() < 1e-12
    weights = reference.equal_weights(n)
    assert run.energy == pytest.approx([reference.energy(y, beta, weights) for y in expected], abs=1e-12)
    counts = np.array([len(reference.components(y, golden.DELTA)) for y in expected])
    assert np.array_equal(run.cluster_count, counts)
    assert run.steps == count
    more = [np.flatnonzero(counts > k) for k in range(1, n + 1)]
    for k, found in enumerate(run.log_time_to_clusters, start=1):
        if len(more[k - 1]) == 0:
            assert found == -np.inf
        elif more[k - 1][-1] == count:
            assert found == np.inf
        else:  # between the last layer with more than k clusters and the next
            low, high = times[more[k - 1][-1]], times[more[k - 1][-1] + 1]
            assert low * (1 - 1e-12) <= math.exp(found) <= high * (1 + 1e-12)


@pytest.mark.parametrize("key", list(golden.G3), ids=str)
def test_g3_layers_until_orthonormal_tokens_meet(key: tuple[int, float]):
    n, beta = key
    count = golden.G3[key]
    times = 0.1 * np.array([count - 1, count])
    run = simulate(np.eye(n), beta, times=times, horizon=times[-1], integrator=Layers(step=0.1))
    assert run.pair_sync_fraction.tolist() == [0.0, 1.0]
    assert math.exp(run.log_time_to_clusters[0]) == pytest.approx(0.1 * (count - 0.5), abs=0.05 + 1e-9)


def test_layers_with_weights_and_matrices(tmp_path: Path):
    dynamics = dynamics_with("sa", tmp_path, golden.G9_QUERY, golden.G9_KEY, golden.G9_VALUE)
    times = 0.125 * np.arange(41)
    run = simulate(
        golden.G9_TOKENS,
        golden.G9_BETA,
        dynamics=dynamics,
        weights=golden.G9_WEIGHTS,
        times=times,
        horizon=times[-1],
        integrator=Layers(step=0.125),
    )
    x = golden.G9_TOKENS
    for found in run.tokens:
        assert np.abs(found - x).max() < 1e-12
        moved = reference.attention(
            x,
            golden.G9_BETA,
            golden.G9_WEIGHTS,
            softmax=True,
            query=golden.G9_QUERY,
            key=golden.G9_KEY,
            value=golden.G9_VALUE,
        )
        x = reference.normalise(x + 0.125 * moved)


def test_layers_need_a_finite_horizon():
    with pytest.raises(ValueError, match="horizon"):
        simulate(np.eye(3), 1.0, integrator=Layers(step=0.1))
