"""The room that trajectories are followed in, one after the other: the compiled loop makes no array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.integrate.runge_kutta import ALL_STAGES, DEGREE, apart
from pipeline.sphere import pairs


class Workspace(NamedTuple):
    """The arrays that `adaptive.solve` works in; what they hold before means nothing."""

    # all atoms, and the tokens in them
    x: NDArray[np.float64]
    mass: NDArray[np.float64]
    squares: NDArray[np.float64]
    mark: NDArray[np.float64]
    aside: NDArray[np.float64]
    nearest: NDArray[np.float64]
    member: NDArray[np.int64]
    labels: NDArray[np.int64]
    queue: NDArray[np.int64]
    together: NDArray[np.bool_]
    shown: NDArray[np.float64]
    # those that move, packed
    moving: NDArray[np.int64]
    slot_of: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    trial: NDArray[np.float64]
    m: NDArray[np.float64]
    weight: NDArray[np.float64]
    slopes: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    scratch: NDArray[np.float64]
    # the step
    p: NDArray[np.float64]
    rates: NDArray[np.float64]
    lapse: NDArray[np.float64]
    one: NDArray[np.float64]
    terms: NDArray[np.float64]
    # pairs that come together or part in it
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    theta: NDArray[np.float64]

    @classmethod
    def of(cls, atoms: int, dimension: int, tokens: int) -> Workspace:
        """Room for so many atoms made of so many tokens."""
        stride = pairs.stride_of(atoms)
        size = dimension * stride
        most = atoms * (atoms - 1) // 2  # all may cross in one step; what is not touched takes no memory
        return cls(
            x=np.empty(size),
            mass=np.empty(stride),
            squares=np.empty(stride),
            mark=np.empty(stride),
            aside=np.empty(stride),
            nearest=np.empty(stride),
            member=np.empty(tokens, np.int64),
            labels=np.empty(atoms, np.int64),
            queue=np.empty(atoms, np.int64),
            together=np.empty((atoms, atoms), np.bool_),
            shown=np.empty(size),
            moving=np.empty(stride, np.int64),
            slot_of=np.empty(atoms, np.int64),
            start=np.empty(size),
            end=np.empty(size),
            trial=np.empty(size),
            m=np.empty(stride),
            weight=np.empty(stride),
            slopes=np.empty(ALL_STAGES * apart(size)),
            coefficients=np.empty(DEGREE * apart(size)),
            scratch=np.empty(pairs.scratch_size(stride, dimension)),
            p=np.empty(3),
            rates=np.empty(ALL_STAGES),
            lapse=np.empty(DEGREE),
            one=np.empty(dimension),
            terms=np.empty(8 * dimension),
            before=np.empty(stride),
            after=np.empty(stride),
            first=np.empty(most, np.int32),
            second=np.empty(most, np.int32),
            theta=np.empty(most),
        )
