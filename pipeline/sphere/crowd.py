"""A crowd: so many tokens that nothing may cost n². One interface over the circle and S².

Places are flat float64 arrays as in `pairs`, stride a multiple of eight: on the circle one angle per atom, in
ascending order, on S² three components. What a crowd can do in O(n) or nearly so is here; who moves it, and
by which equation, is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.sphere import circle, discs, spectral, surface
from pipeline.sphere.pairs import stride_of


@dataclass(frozen=True)
class Crowd:
    """Atoms apart from their places; coalescing makes a new one.

    Attributes
    ----------
    mass, squares : ndarray, shape (atoms,)
        Sum of the tokens' weights, all together 1, and sum of the squares of these weights.
    member : ndarray of int64
        The atom of each token.
    coordinates : int
        1 on the circle, 3 on S².
    """

    mass: NDArray[np.float64]
    squares: NDArray[np.float64]
    member: NDArray[np.int64]
    coordinates: int

    @classmethod
    def of(
        cls, tokens: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[Crowd, NDArray[np.float64]]:
        """A crowd of (n, 2) or (n, 3) unit rows, and its places (0 in the padding)."""
        n, dimension = tokens.shape
        if dimension == 2:
            rows = np.arctan2(tokens[:, 1], tokens[:, 0])[None]
            order = np.argsort(rows[0], kind="stable")
        else:
            rows = tokens.T
            order = surface.along_a_curve(rows)
        member = np.empty(n, np.int64)
        member[order] = np.arange(n)
        mass = (weights / weights.sum())[order]
        return cls(mass, mass * mass, member, len(rows)), _flat(rows[:, order])

    @property
    def atoms(self) -> int:
        """How many there are."""
        return self.mass.size

    @property
    def stride(self) -> int:
        """Lanes of one coordinate."""
        return int(stride_of(self.atoms))

    def rows(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """A view (coordinates, atoms) of places, or of velocities, laid out like this crowd's."""
        return place.reshape(self.coordinates, self.stride)[:, : self.atoms]

    def positions(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Unit rows, shape (atoms, dimension)."""
        rows = self.rows(place)
        return circle.to_positions(rows[0]) if self.coordinates == 1 else np.ascontiguousarray(rows.T)

    def settle(self, place: NDArray[np.float64]) -> None:
        """Put places back on the sphere, where arithmetic has carried them off it."""
        if self.coordinates == 3:
            rows = self.rows(place)
            rows /= np.sqrt(rows[0] ** 2 + rows[1] ** 2 + rows[2] ** 2)

    def sums(
        self, place: NDArray[np.float64], beta: float, epsilon: float, threads: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights (atoms,) and forces (coordinates, atoms); see `spectral`."""
        rows = self.rows(place)
        if self.coordinates == 1:
            weight, force = spectral.circle_sums(rows[0], self.mass, beta, epsilon, threads)
            return weight, force[None]
        return spectral.sphere_sums(rows, self.mass, beta, epsilon, threads)

    def clusters(self, place: NDArray[np.float64], delta: float) -> tuple[int, NDArray[np.int64]]:
        """How many clusters there are at tolerance delta, and in which each atom is."""
        rows = self.rows(place)
        if self.coordinates == 1:
            return circle.clusters(rows[0], circle.wedge(delta))
        return surface.clusters(rows, delta)

    def meeting(
        self, place: NDArray[np.float64], labels: NDArray[np.int64], delta: float
    ) -> tuple[int, int] | None:
        """The closest two atoms that are together though their labels differ, if there are any."""
        rows = self.rows(place)
        if self.coordinates == 1:
            return circle.meeting(rows[0], labels, circle.wedge(delta))
        return surface.meeting(rows, labels, delta)

    def gap(self, one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
        """1 - <x, y> of two atoms at these coordinates."""
        if self.coordinates == 1:
            return 2.0 * float(np.sin(0.5 * (one[0] - two[0]))) ** 2
        apart = one / np.linalg.norm(one) - two / np.linalg.norm(two)
        return 0.5 * float(apart @ apart)

    def mass_together(self, place: NDArray[np.float64], delta: float) -> float:
        """Sum of m_i m_j over ordered pairs i != j of atoms that are together."""
        if delta >= 2.0:
            return float(self.mass.sum() ** 2 - np.sum(self.mass**2))
        rows = self.rows(place)
        if self.coordinates == 1:
            return float(circle.mass_together(rows[0], self.mass, circle.wedge(delta)))
        return discs.mass_together(rows, self.mass, delta)

    def coalesced(
        self, place: NDArray[np.float64], chord: float, shift: float
    ) -> tuple[Crowd, NDArray[np.float64]]:
        """The crowd with one atom for tokens within ``chord``, and its places.

        On S²: for tokens in one cell of a grid that is moved by ``shift`` cells.
        """
        rows, mass, squares = self.rows(place).copy(), self.mass.copy(), self.squares.copy()
        atom = np.empty(self.atoms, np.int64)
        if self.coordinates == 1:
            left = circle.coalesce(rows[0], mass, squares, atom, chord)
        else:
            left = surface.coalesce(rows, mass, squares, atom, chord, shift)
        if left == self.atoms:
            return self, place
        fewer = Crowd(mass[:left].copy(), squares[:left].copy(), atom[self.member], self.coordinates)
        return fewer, _flat(rows[:, :left])


def _flat(rows: NDArray[np.float64]) -> NDArray[Any]:
    flat = np.zeros((rows.shape[0], stride_of(rows.shape[1])))
    flat[:, : rows.shape[1]] = rows
    return flat.reshape(-1)
