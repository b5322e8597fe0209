"""The references are checked against one another, closed forms and golden numbers, without the package."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from tests import reference
from tests.physics import golden

DYNAMICS = pytest.mark.parametrize("softmax", [True, False], ids=["sa", "usa"])


def test_equiangular_quadrature_and_closed_form_give_g1():
    for (n, beta), row in golden.G1.items():
        for softmax, expected in zip((True, False), row, strict=True):
            quadrature = reference.equiangular_time(beta, n, golden.DELTA, 0.0, softmax)
            closed = reference.equiangular_closed_form(beta, n, golden.DELTA, softmax)
            # δ = 1e-3 is a double: 2e-20 off the decimal number
            assert abs(quadrature / expected - 1) < 1e-15
            assert abs(closed / expected - 1) < 1e-15


def test_equiangular_quadrature_gives_g2():
    for (n, end), beta in golden.G2.items():
        # twelve digits of beta, d log t / d beta < 1
        assert float(reference.equiangular_time(beta, n, golden.DELTA, 0.0, True)) == pytest.approx(
            end, rel=3e-12
        )


@DYNAMICS
@pytest.mark.parametrize("rho0", [0.0, -0.2])
def test_equiangular_times_invert_the_ode(softmax: bool, rho0: float):
    targets = [0.6, 0.9, 0.99]
    times = [float(reference.equiangular_time(2.0, 5, 1 - rho, rho0, softmax)) for rho in targets]
    assert reference.equiangular_rho(np.array(times), 2.0, 5, rho0, softmax) == pytest.approx(
        targets, abs=1e-13
    )


@DYNAMICS
@pytest.mark.parametrize("rho0", [0.0, -0.2])
def test_equiangular_frame_follows_its_ode_in_the_textbook_field(softmax: bool, rho0: float):
    x = reference.equiangular_frame(5, 7, rho0)
    times = np.array([0.3, 0.9])
    field = reference.textbook(2.0, reference.equal_weights(5), softmax=softmax)
    rho = reference.equiangular_rho(times, 2.0, 5, rho0, softmax)
    for tokens, expected in zip(reference.tokens_at(field, x, times), rho, strict=True):
        off_diagonal = (tokens @ tokens.T)[np.triu_indices(5, 1)]
        assert off_diagonal == pytest.approx(expected, abs=1e-10)


def test_two_cluster_quadrature_gives_g4():
    for beta, row in golden.G4.items():
        for (name, m1, u0), expected in zip(golden.G4_CASES, row, strict=True):
            found = reference.two_cluster_log_time(beta, u0, golden.DELTA, m1, 1 - m1, name == "sa")
            assert found == pytest.approx(math.log(expected), abs=1e-14, rel=1e-15)


@DYNAMICS
def test_two_cluster_quadrature_is_the_ode_and_the_textbook_field(softmax: bool):
    log_time = reference.two_cluster_log_time(3.0, -0.4, 0.1, 0.2, 0.8, softmax)
    t = math.exp(log_time)
    assert reference.two_cluster_inner_product(t, 3.0, -0.4, 0.2, 0.8, softmax) == pytest.approx(
        0.9, abs=1e-12
    )
    x = np.array([[1, 0, 0], [-0.4, math.sqrt(1 - 0.16), 0]])
    tokens = reference.tokens_at(
        reference.textbook(3.0, np.array([0.2, 0.8]), softmax=softmax), x, np.array([t])
    )[0]
    assert tokens[0] @ tokens[1] == pytest.approx(0.9, abs=1e-10)


def test_two_cluster_quadrature_does_not_depend_on_its_digits():
    """At β=1000 the integrand spans 800 decades: cutting it badly would show as a change with precision."""
    for beta, u0 in [(1000.0, -0.9), (256.0, -0.999), (64.0, 0.7)]:
        for softmax in (True, False):
            few = reference.two_cluster_log_time(beta, u0, 1e-3, 0.3, 0.7, softmax)
            many = reference.two_cluster_log_time(beta, u0, 1e-3, 0.3, 0.7, softmax, digits=45)
            assert few == pytest.approx(many, rel=1e-14)
    # a prototype of the integrator, independent of the quadrature
    assert reference.two_cluster_log_time(1000.0, -0.9, 1e-3, 0.5, 0.5, True) == pytest.approx(
        1894.05049620, abs=2e-8
    )


@DYNAMICS
def test_fifty_digit_circle_equals_the_two_cluster_quadrature(softmax: bool):
    found = reference.circle_merge_log_times([0.0, 1.2], [0.25, 0.75], 40, 1e-3, softmax=softmax)
    expected = reference.two_cluster_log_time(40, float(mp.cos(1.2)), 1e-3, 0.25, 0.75, softmax)
    assert found[0] == pytest.approx(expected, abs=1e-13)
    assert found[1] == -np.inf


@DYNAMICS
def test_fifty_digit_circle_equals_brute_force_on_the_textbook_field(softmax: bool):
    """β=4, three weighted atoms: both references reach the end, with nothing in common but the equation."""
    angles, weights = [0.0, 0.8, 1.9], np.array([0.25, 0.45, 0.3])
    precise = reference.circle_merge_log_times(angles, weights, 4, 1e-3, softmax=softmax)
    end = 2 * math.exp(precise[0])
    solution = reference.solve(
        reference.textbook(4.0, weights, softmax=softmax), reference.circle(np.array(angles)), end, rtol=1e-12
    )
    brute = reference.log_time_to_clusters(solution, 1e-3)
    assert brute[:2] == pytest.approx(precise[:2], abs=1e-9)
    assert brute[2] == precise[2] == -np.inf


def test_fifty_digit_circle_does_not_depend_on_its_tolerance():
    tight = reference.circle_merge_log_times(
        [0.0, 0.8, 1.9], [0.25, 0.45, 0.3], 16, 1e-3, softmax=True, tolerance=1e-24
    )
    loose = reference.circle_merge_log_times([0.0, 0.8, 1.9], [0.25, 0.45, 0.3], 16, 1e-3, softmax=True)
    assert loose[:2] == pytest.approx(tight[:2], abs=1e-14)


@DYNAMICS
def test_field_without_self_term_is_the_textbook_field(softmax: bool):
    x, w = reference.random_tokens(9, 4, 0), reference.random_weights(9, 0)
    for beta in (0.0, 1.0, 6.0):
        one = reference.textbook(beta, w, softmax=softmax)(x)
        other = reference.without_self_term(beta, w, softmax=softmax)(x)
        assert other == pytest.approx(one, abs=1e-14 * math.exp(0 if softmax else beta))


def test_textbook_field_gives_g9():
    x, beta = golden.G9_TOKENS, golden.G9_BETA
    for (name, token, general), expected in golden.G9_VELOCITY.items():
        matrices = (
            {"query": golden.G9_QUERY, "key": golden.G9_KEY, "value": golden.G9_VALUE} if general else {}
        )
        weights = golden.G9_WEIGHTS if general else reference.equal_weights(6)
        velocity = reference.textbook(beta, weights, softmax=name == "sa", **matrices)(x)
        assert velocity[token] == pytest.approx(expected, abs=1e-14)
    unit = math.exp(beta) / (2 * beta)
    assert unit * reference.energy(x, beta, reference.equal_weights(6)) == pytest.approx(
        golden.G9_ENERGY_EQUAL, abs=1e-14
    )
    assert unit * reference.energy(x, beta, golden.G9_WEIGHTS) == pytest.approx(
        golden.G9_ENERGY_WEIGHTED, abs=1e-14
    )


def test_dop853_gives_the_g9_flow():
    for name, rows in golden.G9_FLOW.items():
        field = reference.textbook(golden.G9_BETA, reference.equal_weights(6), softmax=name == "sa")
        tokens = reference.tokens_at(field, golden.G9_TOKENS, np.array([row[0] for row in rows]))
        for x, (_, energy, c01, c45) in zip(tokens, rows, strict=True):
            found = math.exp(2) / 4 * reference.energy(x, 2.0, reference.equal_weights(6))
            assert (found, x[0] @ x[1], x[4] @ x[5]) == pytest.approx((energy, c01, c45), abs=1e-11)


def test_dense_output_of_dop853_is_as_good_as_its_steps():
    field = reference.textbook(4.0, reference.equal_weights(8), softmax=True)
    x = reference.random_tokens(8, 3, 5)
    times = np.array([0.37, 2.2, 9.1])
    solution = reference.solve(field, x, 10.0)
    for t, expected in zip(times, reference.tokens_at(field, x, times), strict=True):
        assert solution(t) == pytest.approx(expected, abs=1e-8)


def test_published_scheme_gives_g3_by_its_scalar_recursion():
    for (n, beta), count in golden.G3.items():
        rho, steps = 0.0, 0
        while rho <= 0.999:
            rho, steps = reference.published_scheme_rho(rho, beta, n, 0.1), steps + 1
        assert steps == count


def test_layers_follow_the_scalar_recursion():
    iterates = reference.layers(np.eye(6), 3.0, 0.1, 40, softmax=True)
    rho = 0.0
    for x in iterates:
        assert (x @ x.T)[np.triu_indices(6, 1)] == pytest.approx(rho, abs=1e-14)
        rho = reference.published_scheme_rho(rho, 3.0, 6, 0.1)


@DYNAMICS
def test_ring_height_is_the_textbook_field(softmax: bool):
    times = np.array([0.5, 1.0, 1.5])
    field = reference.textbook(1.5, reference.equal_weights(5), softmax=softmax)
    tokens = reference.tokens_at(field, reference.latitude_ring(5, 0.3), times)
    expected = reference.ring_height(times, 1.5, 5, 0.3, softmax)
    assert tokens[:, :, 2] == pytest.approx(np.repeat(expected[:, None], 5, axis=1), abs=1e-10)


def test_union_find_spanning_tree_and_scipy_count_the_same_clusters():
    for seed in range(20):
        x = reference.random_tokens(30, 2 + seed % 3, seed)
        tree = reference.spanning_tree(x)
        for delta in (1e-3, 0.01, 0.05, 0.2, 1.0):
            count = len(reference.components(x, delta))
            assert count == 1 + np.sum(tree > delta)
            # single linkage on chords: |x-y|² = 2δ
            assert count == fcluster(linkage(x, "single"), math.sqrt(2 * delta), "distance").max()


def test_observables_of_simple_states():
    two = np.array([[1.0, 0], [-1, 0]])
    half = np.array([0.5, 0.5])
    assert reference.energy(two, 3.0, half) == pytest.approx(0.5 + 0.5 * math.exp(-6))
    assert reference.order_parameter(two, np.array([0.75, 0.25])) == pytest.approx(0.5)
    assert reference.pair_sync_fraction(two, 1e-3, half) == 0.0
    three = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    assert reference.pair_sync_fraction(three, 1e-3, np.array([0.5, 0.25, 0.25])) == pytest.approx(
        0.125 / 0.3125
    )
