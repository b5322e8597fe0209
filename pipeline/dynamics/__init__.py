"""Equations of motion of tokens under self-attention, apart from how they are stepped.

SA:   dx_i/dt = P(x_i) sum_j w_ij V x_j,  w_ij = m_j exp(beta <Q x_i, K x_j>) / sum_k m_k exp(beta <Q x_i, K
x_k>) USA:  dx_i/dt = P(x_i) sum_j m_j exp(beta <Q x_i, K x_j>) V x_j

with P(x) y = y - <x, y> x and masses m_j of sum 1 (Geshkovski, Letrouit, Polyanskiy, Rigollet, "A
mathematical perspective on Transformers", arXiv:2312.10794, sections 2 and 3). What holds for a dynamics, and
so what a stepper may use, is declared here as properties.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.dynamics import fields
from pipeline.dynamics.matrices import Matrix

__all__ = ["DYNAMICS", "Dynamics", "Field", "Matrix"]

# name -> whether each row of the attention matrix is normalised (softmax)
DYNAMICS: dict[str, bool] = {"sa": True, "usa": False}


@dataclass(frozen=True)
class Field:
    """One equation in one dimension, ready to be stepped; `pipeline.dynamics.fields` has the functions."""

    velocity: Any
    reference: Any
    matrices: NDArray[np.float64]
    normalised: bool
    decays: bool
    """Pairs weigh exp(-beta h_ij) at gap h_ij, so far pairs may be left out on the clock of close ones."""
    coalesces: bool
    geodesic: bool
    """Two tokens alone approach along their great circle, the angle phi at rate -sin(phi) on the clock."""
    clock_offset: float
    """ln t is the clock's own ln time plus this many beta."""


@dataclass(frozen=True)
class Dynamics:
    """Which equation moves the tokens.

    Parameters
    ----------
    name : {"sa", "usa"}
        Normalised (softmax) or unnormalised self-attention.
    query, key, value : Matrix
        Q, K and V; the identity by default.

    Raises
    ------
    ValueError
        For an unknown name.
    """

    name: str = "sa"
    query: Matrix = field(default_factory=Matrix)
    key: Matrix = field(default_factory=Matrix)
    value: Matrix = field(default_factory=Matrix)

    def __post_init__(self) -> None:
        if self.name not in DYNAMICS:
            raise ValueError(f"dynamics.name: got {self.name!r}; allowed: {', '.join(DYNAMICS)}")

    @property
    def normalised(self) -> bool:
        """Whether attention weights of a token sum to 1."""
        return DYNAMICS[self.name]

    @property
    def symmetric(self) -> bool:
        """Whether Q = K = V = identity: then the field commutes with rotations."""
        return self.query.is_identity and self.key.is_identity and self.value.is_identity

    @property
    def self_term_vanishes(self) -> bool:
        """Whether a token exerts no force on itself (V = identity: P(x) x = 0)."""
        return self.value.is_identity

    @property
    def coalesces(self) -> bool:
        """Whether close tokens contract together, so that a group of them is an atom up to second order."""
        return self.value.is_identity

    @property
    def span_invariant(self) -> bool:
        """Whether tokens stay in the span of their initial positions, up to a rotation fixed once."""
        return self.symmetric

    @property
    def reaches_consensus(self) -> bool:
        """Whether `horizon: consensus` makes sense."""
        return self.value.is_identity

    @property
    def energy_monotone(self) -> bool:
        """Whether the interaction energy never decreases (a gradient flow; arXiv:2312.10794, section 3)."""
        return self.symmetric

    def check(self, d: int) -> None:
        """Raise ValueError unless the matrices exist in dimension d."""
        for role in ("query", "key", "value"):
            matrix = getattr(self, role)
            if not matrix.is_identity:  # it exists, and where it is alone it is never made
                matrix.resolve(d, role)

    def matrices(self, d: int) -> NDArray[np.float64]:
        """K'Q and V, shape (2, d, d): scores are beta <K'Q x_i, x_j>, values V x_j."""
        query, key = self.query.resolve(d, "query"), self.key.resolve(d, "key")
        return np.stack([np.einsum("ki,kj->ij", key, query), self.value.resolve(d, "value")])

    def field(self, d: int) -> Field:
        """The equation in dimension d (after reduction to the span, if any).

        Raises
        ------
        ValueError
            If a matrix does not exist in dimension d.
        """
        if self.symmetric:
            velocity = fields.circle_velocity if d == 2 else fields.sphere_velocity
            reference, matrices = fields.identity_reference, np.empty((0, 0, 0))
        else:
            matrices = self.matrices(d)
            if self.self_term_vanishes:
                velocity, reference = fields.attention_velocity, fields.attention_reference
            else:
                velocity, reference = fields.valued_velocity, fields.no_reference
        return Field(
            velocity=velocity,
            reference=reference,
            matrices=matrices,
            normalised=self.normalised,
            decays=self.symmetric,
            coalesces=self.coalesces,
            geodesic=self.symmetric,
            clock_offset=-1.0 if self.self_term_vanishes and not self.normalised else 0.0,
        )
