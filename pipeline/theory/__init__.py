"""Closed forms: what the mathematics says about a sweep before anything is simulated.

Conventions. δ is the tolerance: two tokens are together once ⟨x, y⟩ ≥ 1 − δ; s = 1 − ⟨x, y⟩ is the gap of
a pair. Weights are shares of the tokens and sum to one over the whole system. ``dynamics`` is "sa" (softmax
attention) or "usa" (unnormalised), with Q = K = V = I. Times are those of the equations, as natural
logarithms: at β = 1000 they pass 10⁸⁰⁰, and nothing here overflows. Arguments broadcast like NumPy arrays.

A simulation is checked against this package and this package against arbitrary-precision arithmetic, so it
never looks at the code that simulates.

References
----------
MPT  Geshkovski, Letrouit, Polyanskiy, Rigollet, "A mathematical perspective on Transformers",
     arXiv:2312.10794.
DM   Geshkovski, Koubbi, Polyanskiy, Rigollet, "Dynamic metastability in the self-attention model",
     arXiv:2410.06833.
R    Rigollet, "The mean-field dynamics of transformers", arXiv:2512.01868.
BPA  Bruno, Pasqualotto, Agazzi, "Emergence of meta-stable clustering in mean-field transformer models",
     arXiv:2410.23228.
"""

from __future__ import annotations

from pipeline.theory.clusters import (
    metastable_log_time,
    plateau_energy,
    two_cluster_log_time,
    two_cluster_log_time_laplace,
)
from pipeline.theory.dwell import Dynamics
from pipeline.theory.equiangular import equiangular, equiangular_beta, equiangular_log_time
from pipeline.theory.stability import (
    antipodal_rates,
    fastest_mode,
    hemisphere_probability,
    mode_rates,
    polygon_eigenvalues,
)

__all__ = [
    "Dynamics",
    "antipodal_rates",
    "equiangular",
    "equiangular_beta",
    "equiangular_log_time",
    "fastest_mode",
    "hemisphere_probability",
    "metastable_log_time",
    "mode_rates",
    "plateau_energy",
    "polygon_eigenvalues",
    "two_cluster_log_time",
    "two_cluster_log_time_laplace",
]
