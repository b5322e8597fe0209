"""Closed forms against arbitrary precision, published numbers and one another."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import theory

TOLERANCE = 1e-3
BETAS = (0.0, 1.0, 2.0, 4.0, 9.0)

# Time to 1 - 1e-3 from orthonormal tokens, 18 digits: {n: (SA at BETAS, USA at BETAS)}.
ORTHONORMAL = {
    2: (
        (
            3.80020116725020003,
            4.27106768030933521,
            5.16326481711783572,
            10.8312070099949506,
            466.710652910029352,
        ),
        (
            3.80020116725020003,
            1.744460101128147,
            0.883242511574647076,
            0.327157840364486772,
            0.114724358400045724,
        ),
    ),
    8: (
        (
            4.49316071881300952,
            4.70676032456112325,
            5.15190327602554393,
            8.36544961952820928,
            322.744176177209717,
        ),
        (
            4.49316071881300952,
            2.28157268310685786,
            1.321292062991132,
            0.649682670621648715,
            0.314756863828899178,
        ),
    ),
    32: (
        (
            5.18626098112015614,
            5.2702839075862406,
            5.45839368289768887,
            6.95350184880806874,
            178.730929519039129,
        ),
        (
            5.18626098112015614,
            2.89704862298957426,
            1.88041709955511466,
            1.1307703412964512,
            0.68598766887729669,
        ),
    ),
    128: (
        (
            5.87939643142895623,
            5.90902039681168933,
            5.97867286822221075,
            6.56954989277840732,
            82.5933575019809484,
        ),
        (
            5.87939643142895623,
            3.55785919589555326,
            2.51544718190127535,
            1.72568190363523823,
            1.21253420318478841,
        ),
    ),
}

# Time to 1 - 1e-3 of two clusters: beta, SA equal from 0, USA from 0, SA 1/4 : 3/4 from -1/2, USA from -1/2.
TWO_CLUSTERS = (
    (2, 5.16326481711783572, 0.883242511574647076, 7.28683850510554716, 1.85005596974714906),
    (4, 10.8312070099949506, 0.327157840364486772, 38.7280276000889368, 2.16662643741472807),
    (8, 196.716190273367955, 0.130707034810025161, 7285.40633735337742, 8.14292916222041805),
    (16, 279981.160099381959, 0.0630150298834672897, 619245674.167498261, 232.289732538966853),
    (32, 1.23623512770057619e12, 0.0313117726295632254, 8.45110951509352672e18, 356754.166575564753),
)

# beta, k* and rates SA and USA at k*, d = 2 and d = 3.
FASTEST_MODES = (
    (1, (1, 0.44638996589653, 0.56515910399249), (1, 0.62607057099866, 0.73575888234288)),
    (2, (2, 0.60445068407198, 1.3778968953975), (2, 0.58208375672603, 1.0555682656603)),
    (5, (3, 0.68267833361675, 18.596070304472), (3, 0.67234868729095, 9.9780862449501)),
    (10, (4, 0.69693975614447, 1962.3848604152), (4, 0.7109999908897, 783.04084735803)),
    (20, (6, 0.72010542515811, 31366555.581704), (6, 0.7222849921875, 8760688.4844052)),
    (50, (10, 0.73082864865383, 2.1431943189553e20), (10, 0.72721027946745, 3.7703711564002e19)),
    (100, (14, 0.73317610297821, 7.8724909220056e41), (14, 0.73235932013637, 9.843338212137e40)),
)

POLYGONS = {
    (3, 1.0): (0.0, 0.75816332464079, 0.75816332464079),
    (5, 1.0): (0.0, 0.59618985498625, 0.72901802710122, 0.72901802710122, 0.59618985498625),
    (6, 4.0): (0.0, 3.3217153331814, 9.4731568693274, 12.321198711181, 9.4731568693274, 3.3217153331814),
}


def equiangular_reference(tolerance: float, beta: float, n: int, dynamics: str, start: float) -> float:
    """ln t by 25-digit quadrature of dt/dx along the equation as it is published, in x = ln s."""
    with mp.workdps(25):

        def dt(x: mp.mpf) -> mp.mpf:
            s = mp.exp(x)
            rho = 1 - s
            if dynamics == "sa":
                speed = 2 * mp.exp(beta * rho) * s * ((n - 1) * rho + 1)
                speed /= mp.exp(beta) + (n - 1) * mp.exp(beta * rho)
            else:
                speed = mp.mpf(2) / n * mp.exp(beta * rho) * s * ((n - 1) * rho + 1)
            return s / speed

        first, last = mp.log(mp.mpf(tolerance)), mp.log(1 - mp.mpf(start))
        near = [last - mp.mpf(k) / max(beta, 1) for k in (30, 10, 3, 1, 0.3)]  # all happens near the start
        return float(mp.log(mp.quad(dt, [first, *(x for x in near if x > first), last])))


def pair_reference(
    beta: float, cosine: float, tolerance: float, m1: float, m2: float, dynamics: str
) -> float:
    """ln t of two clusters by quadrature in the angle, from the two attention weights as they are defined."""
    with mp.workdps(25):
        β, a, b = mp.mpf(beta), mp.mpf(m1), mp.mpf(m2)

        def weight(own: mp.mpf, other: mp.mpf, u: mp.mpf) -> mp.mpf:
            pull = other * mp.exp(β * (u - mp.mpf(cosine)))  # of order 1 or more: errors of quad are absolute
            return pull / (own * mp.exp(β * (1 - mp.mpf(cosine))) + pull) if dynamics == "sa" else pull

        def dt(θ: mp.mpf) -> mp.mpf:
            u = mp.cos(θ)
            return 1 / ((weight(a, b, u) + weight(b, a, u)) * mp.sin(θ))

        first, last = mp.acos(1 - mp.mpf(tolerance)), mp.acos(mp.mpf(cosine))
        breadth = 1 / (1 + β * mp.sin(last))
        cuts = [last - k * breadth for k in (300, 100, 30, 10, 3, 1)] + [3 * first, 10 * first]
        inside = sorted(x for x in cuts if first < x < last)
        unit = 0 if dynamics == "sa" else -β * mp.mpf(cosine)
        return float(mp.log(mp.quad(dt, [first, *inside, last])) + unit)


# -------------------------------------------------------------------------------- the equiangular model


@pytest.mark.parametrize("n", ORTHONORMAL)
@pytest.mark.parametrize(("dynamics", "column"), [("sa", 0), ("usa", 1)])
def test_orthonormal_tokens_meet_at_the_golden_times(n: int, dynamics: theory.Dynamics, column: int) -> None:
    log_t = theory.equiangular_log_time(TOLERANCE, BETAS, n, dynamics=dynamics)
    np.testing.assert_allclose(np.exp(log_t), ORTHONORMAL[n][column], rtol=2e-14)


@pytest.mark.parametrize("dynamics", ["sa", "usa"])
@pytest.mark.parametrize(
    ("tolerance", "beta", "n", "start"),
    [
        (1e-3, 30.0, 32, 0.0),
        (1e-9, 1000.0, 2, 0.0),
        (1e-3, 1000.0, 512, 0.0),
        (1e-6, 7.5, 5, 0.7),
        (1e-3, 12.0, 4, -0.33),
        (0.9, 1e-6, 3, 0.0),
        (0.9999, 40.0, 16, 0.0),
    ],
)
def test_equiangular_times_equal_the_quadrature(
    tolerance: float, beta: float, n: int, start: float, dynamics: theory.Dynamics
) -> None:
    ours = theory.equiangular_log_time(tolerance, beta, n, dynamics=dynamics, start=start)
    truth = equiangular_reference(tolerance, beta, n, dynamics, start)
    assert ours == pytest.approx(truth, abs=1e-12 * max(1, abs(truth)))


@pytest.mark.parametrize(
    ("n", "time", "beta"),
    [
        (32, 10, 5.109904309391),
        (32, 20, 6.344739738514),
        (32, 30, 6.906458647577),
        (128, 10, 5.912395693654),
        (128, 20, 7.219827952953),
        (128, 30, 7.784877270906),
    ],
)
def test_curve_leaves_the_diagram_at_the_golden_beta(n: int, time: float, beta: float) -> None:
    assert theory.equiangular_beta(math.log(time), TOLERANCE, n) == pytest.approx(beta, abs=2e-12)


def test_curve_is_absent_before_the_first_tokens_could_meet() -> None:
    shortest = theory.equiangular_log_time(TOLERANCE, 0.0, 32)
    times = np.array([-np.inf, shortest - 0.01, shortest + 0.01, np.nan])
    assert list(np.isnan(theory.equiangular_beta(times, TOLERANCE, 32))) == [True, True, False, True]
    assert list(np.isnan(theory.equiangular_beta(times, TOLERANCE, 32, dynamics="usa"))) == [
        True,
        False,
        True,
        True,
    ]


def test_two_tokens_without_attention_follow_tanh() -> None:
    t = np.geomspace(1e-12, 30, 60)
    for dynamics in ("sa", "usa"):
        np.testing.assert_allclose(
            theory.equiangular(np.log(t), 0.0, 2, dynamics=dynamics), np.tanh(t), rtol=4e-15
        )


@given(
    beta=st.floats(0, 1000),
    n=st.integers(2, 600),
    share=st.floats(1e-3, 0.999),
    dynamics=st.sampled_from(["sa", "usa"]),
    start=st.floats(0, 0.9),
)
@settings(max_examples=150, deadline=None)
def test_inner_product_and_time_are_inverse_functions(
    beta: float, n: int, share: float, dynamics: theory.Dynamics, start: float
) -> None:
    """In time, not in the product: at large beta the fast phase is shorter than the last bit of its date."""
    log_t = theory.equiangular_log_time(share * (1 - start), beta, n, dynamics=dynamics, start=start)
    gap = np.maximum(1 - theory.equiangular(log_t, beta, n, dynamics=dynamics, start=start), 1e-16)
    back = theory.equiangular_log_time(gap, beta, n, dynamics=dynamics, start=start)
    assert back == pytest.approx(log_t, abs=2e-12 * max(1, abs(log_t)))


def test_inner_product_solves_the_equation_as_published() -> None:
    """Classical Runge-Kutta with steps that leave errors near 1e-12, for beta up to the paper's 9."""
    n, beta = 32, np.array([0.0, 1.0, 4.0, 9.0])

    def speed(rho: np.ndarray) -> np.ndarray:
        pull = np.exp(beta * rho)
        return 2 * pull * (1 - rho) * ((n - 1) * rho + 1) / (np.exp(beta) + (n - 1) * pull)

    rho, step = np.zeros(4), 1 / 500
    for _ in range(2000):
        a = speed(rho)
        b = speed(rho + step / 2 * a)
        c = speed(rho + step / 2 * b)
        rho = rho + step / 6 * (a + 2 * b + 2 * c + speed(rho + step * c))
    np.testing.assert_allclose(theory.equiangular(math.log(4), beta, n), rho, atol=1e-11)


def test_inner_product_rises_from_the_start_to_one_at_every_beta() -> None:
    log_t = np.concatenate([[-np.inf], np.linspace(-750, 1500, 800), [np.inf]])
    for dynamics in ("sa", "usa"):
        rho = theory.equiangular(log_t[:, None], [0.0, 1.0, 30.0, 1000.0], 32, dynamics=dynamics, start=-0.01)
        assert np.all(np.diff(rho, axis=0) >= -1e-15)
        assert np.all(rho[0] == -0.01)
        assert np.all(rho[-1] == 1)
    assert np.isnan(theory.equiangular(np.nan, 1.0, 2))


def test_more_attention_to_oneself_slows_sa_and_hurries_usa() -> None:
    beta = np.linspace(0, 1000, 400)
    assert np.all(np.diff(theory.equiangular_log_time(TOLERANCE, beta, 32)) > 0)
    assert np.all(np.diff(theory.equiangular_log_time(TOLERANCE, beta, 32, dynamics="usa")) < 0)


def test_sa_time_is_the_usa_time_in_its_own_clock() -> None:
    """t_SA = ((n-1)/n) t_0 + (e^beta/n) t_USA, t_0 the time at beta = 0: two formulae, one relation."""
    beta, n = np.array([0.5, 3.0, 20.0]), np.array([[2], [33]])
    sa, usa, zero = (
        np.exp(theory.equiangular_log_time(TOLERANCE, b, n, dynamics=dynamics))
        for b, dynamics in ((beta, "sa"), (beta, "usa"), (0.0, "sa"))
    )
    np.testing.assert_allclose(sa, (n - 1) / n * zero + np.exp(beta) / n * usa, rtol=1e-13)


def test_tokens_within_tolerance_have_met_already() -> None:
    assert theory.equiangular_log_time(1.0, 5.0, 8) == -np.inf
    assert theory.equiangular_log_time(0.25, 5.0, 8, start=0.75) == -np.inf


@pytest.mark.parametrize("start", [1.0, -1 / 3, -0.5])
def test_impossible_frames_are_refused(start: float) -> None:
    with pytest.raises(ValueError, match="start: got"):
        theory.equiangular_log_time(TOLERANCE, 1.0, 4, start=start)


# -------------------------------------------------------------------------------- two clusters


@pytest.mark.parametrize(("beta", "sa", "usa", "sa_unequal", "usa_unequal"), TWO_CLUSTERS)
def test_two_clusters_meet_at_the_golden_times(
    beta: float, sa: float, usa: float, sa_unequal: float, usa_unequal: float
) -> None:
    quarters = (0.25, 0.75)
    ours = [
        theory.two_cluster_log_time(beta, 0.0, TOLERANCE),
        theory.two_cluster_log_time(beta, 0.0, TOLERANCE, dynamics="usa"),
        theory.two_cluster_log_time(beta, -0.5, TOLERANCE, weights=quarters),
        theory.two_cluster_log_time(beta, -0.5, TOLERANCE, weights=quarters, dynamics="usa"),
    ]
    np.testing.assert_allclose(np.exp(ours), [sa, usa, sa_unequal, usa_unequal], rtol=3e-14)


@pytest.mark.parametrize("dynamics", ["sa", "usa"])
@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.999, 0.001), (0.05, 0.1)])
@pytest.mark.parametrize(
    ("beta", "cosine", "tolerance"),
    [
        (0.0, 0.3, 1e-3),
        (1e-3, -0.9, 0.5),
        (1.0, 0.99, 1e-3),
        (16.0, -0.999999, 1e-9),
        (64.0, 0.5, 1e-3),
        (256.0, -0.7, 1e-6),
        (1000.0, -0.9, 1e-3),
        (1000.0, 0.9, 1e-3),
    ],
)
def test_two_cluster_times_equal_the_quadrature(
    beta: float, cosine: float, tolerance: float, weights: tuple[float, float], dynamics: theory.Dynamics
) -> None:
    ours = theory.two_cluster_log_time(beta, cosine, tolerance, weights=weights, dynamics=dynamics)
    truth = pair_reference(beta, cosine, tolerance, *weights, dynamics)
    assert ours == pytest.approx(truth, abs=1e-12 * max(1, abs(truth)))


def test_time_of_the_prototype_at_beta_1000() -> None:
    assert theory.two_cluster_log_time(1000.0, -0.9, TOLERANCE) == pytest.approx(1894.05049620, abs=5e-8)


def test_two_equal_clusters_are_two_equiangular_tokens() -> None:
    beta = np.array([0.0, 0.1, 3.0, 80.0, 1000.0])
    for dynamics in ("sa", "usa"):
        pair = theory.two_cluster_log_time(beta, -0.8, TOLERANCE, dynamics=dynamics)
        frame = theory.equiangular_log_time(TOLERANCE, beta, 2, dynamics=dynamics, start=-0.8)
        np.testing.assert_allclose(pair, frame, rtol=1e-13)


@pytest.mark.parametrize("dynamics", ["sa", "usa"])
def test_clusters_may_be_named_in_either_order(dynamics: theory.Dynamics) -> None:
    one, other = (
        theory.two_cluster_log_time([2.0, 50.0], -0.2, TOLERANCE, weights=w, dynamics=dynamics)
        for w in ((0.1, 0.7), (0.7, 0.1))
    )
    assert np.array_equal(one, other)


def test_antipodal_clusters_never_meet_and_close_ones_have_met() -> None:
    assert theory.two_cluster_log_time(3.0, -1.0, TOLERANCE) == np.inf
    assert theory.two_cluster_log_time(3.0, 0.9995, TOLERANCE) == -np.inf


@pytest.mark.parametrize("dynamics", ["sa", "usa"])
@pytest.mark.parametrize("cosine", [-0.5, 0.0, 0.5])
def test_laplace_limit_is_approached_like_one_over_beta(cosine: float, dynamics: theory.Dynamics) -> None:
    """The error is the next term of the asymptotic series, 2u_0/(beta (1 - u_0^2)) plus lower orders."""
    if dynamics == "usa" and cosine >= 0:
        cosine = (
            -0.25
        )  # the late, contracting part of USA is negligible only when the clusters start far apart
    beta = np.array([500.0, 1000.0])
    weights = (0.3, 0.7)
    exact = theory.two_cluster_log_time(beta, cosine, TOLERANCE, weights=weights, dynamics=dynamics)
    error = exact - theory.two_cluster_log_time_laplace(beta, cosine, weights=weights, dynamics=dynamics)
    assert np.all(np.abs(error) < 3 / beta)


# -------------------------------------------------------------------------------- plateaus


def test_plateau_energy_of_far_clusters_is_the_sum_of_squared_weights() -> None:
    assert theory.plateau_energy([0.5, 0.25, 0.25]) == pytest.approx(0.375)
    assert theory.plateau_energy([1.0]) == 1


def test_a_merger_raises_the_plateau_by_twice_the_product_of_weights() -> None:
    before, after = theory.plateau_energy([0.5, 0.2, 0.3]), theory.plateau_energy([0.5, 0.5])
    assert after - before == pytest.approx(2 * 0.2 * 0.3)


def test_plateau_energy_with_positions_is_the_double_sum() -> None:
    m, beta, cosines = [0.6, 0.4], 3.0, [[1.0, -0.2], [-0.2, 1.0]]
    expected = 0.36 + 0.16 + 2 * 0.24 * math.exp(-3.0 * 1.2)
    assert theory.plateau_energy(m, beta, cosines) == pytest.approx(expected, rel=1e-15)
    assert theory.plateau_energy(m, 1000.0, cosines) == pytest.approx(theory.plateau_energy(m))


def test_proved_life_grows_like_its_exponent_and_is_silent_where_the_theorem_is() -> None:
    log_t = theory.metastable_log_time([1.0, 100.0, 200.0], 10, 0.01, 0.2)
    assert log_t[0] == -np.inf
    assert log_t[2] - log_t[1] == pytest.approx(80.0)
    assert log_t[1] == pytest.approx(math.log(0.01 / 10) + 80)
    assert theory.metastable_log_time(100.0, 10, 0.07, 0.2) == -np.inf


def test_proved_life_is_shorter_than_that_of_the_two_clusters_it_speaks_of() -> None:
    """alpha for two clusters at cosine u_0: the caps of 2 epsilon come closer by twice their radius."""
    epsilon, cosine, beta = 1e-3, -0.5, np.array([40.0, 100.0, 1000.0])
    alpha = math.cos(math.acos(cosine) - 2 * math.acos(1 - 2 * epsilon))
    bound = theory.metastable_log_time(beta, 2, epsilon, alpha)
    assert np.all(np.isfinite(bound))
    assert np.all(bound < theory.two_cluster_log_time(beta, cosine, TOLERANCE))


# -------------------------------------------------------------------------------- instabilities


@pytest.mark.parametrize(("beta", "circle", "sphere"), FASTEST_MODES)
def test_fastest_modes_are_the_golden_ones(
    beta: float, circle: tuple[int, float, float], sphere: tuple[int, float, float]
) -> None:
    for d, (k, sa, usa) in ((2, circle), (3, sphere)):
        assert theory.mode_rates(beta, d, k)[-1] == pytest.approx(sa, rel=2e-13)
        assert theory.mode_rates(beta, d, k, dynamics="usa")[-1] == pytest.approx(usa, rel=2e-13)
        if (d, beta) != (3, 50):  # degrees 9 and 10 differ by 2e-5 there
            assert theory.fastest_mode(beta, d) == k


@pytest.mark.parametrize("d", [2, 3, 8, 128, 1024])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 50.0, 1000.0])
def test_mode_rates_equal_ratios_of_bessel_functions(d: int, beta: float) -> None:
    with mp.workdps(30):
        ν, b = mp.mpf(d) / 2 - 1, mp.mpf(beta)
        truth = [
            float(
                k
                * (k + d - 2)
                * mp.besseli(k + ν, b, maxterms=10**6)
                / (b * mp.besseli(ν, b, maxterms=10**6))
            )
            for k in range(1, 13)
        ]
    np.testing.assert_allclose(theory.mode_rates(beta, d, 12), truth, rtol=2e-13)


def test_modes_without_attention_are_those_of_the_kuramoto_model() -> None:
    for d in (2, 3, 50):
        np.testing.assert_allclose(theory.mode_rates([0.0, 1e-9], d, 3)[0], [(d - 1) / d, 0, 0])
        np.testing.assert_allclose(theory.mode_rates(1e-9, d, 1), [(d - 1) / d], rtol=1e-8)


def test_switch_points_of_the_fastest_mode_on_the_circle() -> None:
    points = [
        1.0444568621078,
        3.1654344427006,
        6.211298379432,
        10.228483162986,
        15.236276728521,
        21.240451963642,
    ]
    for k, beta in enumerate(points, start=1):
        assert list(theory.fastest_mode([beta - 1e-9, beta + 1e-9], 2)) == [k, k + 1]


def test_sa_rates_stay_below_two_over_e() -> None:
    rates = theory.mode_rates(np.linspace(1, 1000, 200), 2, 60)
    assert rates.max() < 2 / math.e


@pytest.mark.parametrize(("n", "beta"), POLYGONS)
def test_polygon_eigenvalues_are_the_golden_ones(n: int, beta: float) -> None:
    np.testing.assert_allclose(
        theory.polygon_eigenvalues(n, beta, dynamics="usa"), POLYGONS[n, beta], rtol=2e-13
    )
    partition = np.exp(beta * np.cos(2 * np.pi * np.arange(n) / n)).mean()
    np.testing.assert_allclose(
        theory.polygon_eigenvalues(n, beta), np.array(POLYGONS[n, beta]) / partition, rtol=2e-13
    )


def test_fine_polygons_have_the_rates_of_the_uniform_measure() -> None:
    np.testing.assert_allclose(
        theory.polygon_eigenvalues(256, 5.0)[1:7], theory.mode_rates(5.0, 2, 6), rtol=1e-12
    )


def test_a_polygon_of_two_is_the_balanced_antipodal_pair() -> None:
    for dynamics in ("sa", "usa"):
        escape = theory.antipodal_rates(1.7, 0.5, dynamics=dynamics)[0]
        assert theory.polygon_eigenvalues(2, 1.7, dynamics=dynamics)[1] == pytest.approx(escape, rel=1e-14)


def test_balanced_antipodal_pair_has_its_known_rates() -> None:
    escape, inside, other = theory.antipodal_rates(3.0, 0.5)
    assert escape == pytest.approx(2 / (1 + math.exp(6)), rel=1e-15)
    assert inside == other == pytest.approx(-math.tanh(3.0), rel=1e-15)


@pytest.mark.parametrize("dynamics", ["sa", "usa"])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.625])
def test_antipodal_rates_are_eigenvalues_of_the_linearised_circle(share: float, dynamics: str) -> None:
    """Central differences of the published velocity of 8 angles, beta = 1.2, around 0 and pi."""
    n, beta, eps = 8, 1.2, 1e-5
    rest = np.where(np.arange(n) < share * n, 0.0, np.pi)

    def velocity(θ: np.ndarray) -> np.ndarray:
        gap = θ[None, :] - θ[:, None]
        w = np.exp(beta * np.cos(gap)) / n
        w = w / w.sum(axis=1, keepdims=True) if dynamics == "sa" else w
        return (w * np.sin(gap)).sum(axis=1)

    columns = [(velocity(rest + eps * e) - velocity(rest - eps * e)) / (2 * eps) for e in np.eye(n)]
    eigenvalues = np.sort(np.linalg.eigvals(np.array(columns).T).real)
    escape, inside_p, inside_q = theory.antipodal_rates(beta, share, dynamics=dynamics)
    p = round(share * n)
    expected = np.sort([0.0, escape, *[inside_p] * (p - 1), *[inside_q] * (n - p - 1)])
    np.testing.assert_allclose(eigenvalues, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("n", "d"), [(32, 2), (32, 3), (32, 8), (32, 16), (32, 32), (7, 3), (2, 2), (200, 60)]
)
def test_hemisphere_probability_is_the_exact_fraction(n: int, d: int) -> None:
    exact = Fraction(sum(math.comb(n - 1, k) for k in range(d)), 2 ** (n - 1))
    assert theory.hemisphere_probability(n, d) == pytest.approx(float(exact), rel=1e-13)
