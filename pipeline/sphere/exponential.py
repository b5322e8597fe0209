"""Exponentials of eight numbers at a time: the dearest part of every sum over pairs."""

from __future__ import annotations

from typing import Any

from pipeline.sphere.lanes import eighth, fma, fnma, kernel, larger, scaled, smaller, splat

# 1.5 * 2**49: adding it rounds to eighths and leaves their number in the last bits
_SHIFT = 844424930131968.0
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LOG2_E = 1.4426950408889634


@kernel
def _power_of_two(f: Any, shifted: Any) -> Any:
    """2**(f + k + e / 8) per lane for |f| <= 1/16, ``shifted`` = k + e / 8 + _SHIFT.

    2**f = 1 + f q(f), q of degree 6 through (2**f - 1) / f at its Chebyshev nodes: relative error 6e-18.
    """
    f2 = f * f
    a = fma(f, 0.24022650695910933, 0.6931471805599453)
    b = fma(f, 0.009618129089983302, 0.05550410866482224)
    c = fma(f, 0.00015404433819347582, 0.0013333558132838856)
    q = fma(fma(fma(f2, 1.525342958649691e-05, c), f2, b), f2, a)
    part = eighth(shifted)
    return scaled(fma(part * f, q, part), shifted)


@kernel
def exp2(x: Any, least: float) -> Any:
    """2**max(x, least) per lane, least >= -1021; x is clamped to 1022 too. Relative error below 3e-16."""
    x = smaller(larger(x, splat(least)), splat(1022.0))
    shifted = x + _SHIFT
    return _power_of_two(x - (shifted - _SHIFT), shifted)


@kernel
def exp(x: Any) -> Any:
    """Exponential per lane, relative error below 4e-16 on [-708, 708], to which x is clamped."""
    x = smaller(larger(x, splat(-708.0)), splat(708.0))
    shifted = fma(x, LOG2_E, _SHIFT)
    k = shifted - _SHIFT
    r = fnma(k, _LN2_LOW, fnma(k, _LN2_HIGH, x))
    return _power_of_two(r * LOG2_E, shifted)
