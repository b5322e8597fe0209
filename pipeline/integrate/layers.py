"""The discrete transformer: x_i <- normalise(x_i + step * attention_i), layer after layer.

The attention is the plain weighted average of values, self included and not projected, as the programs
published with arXiv:2312.10794 iterate it. After l layers t = l * step; the state holds until the next layer,
so a save time shows the last layer at or before it, and clusters change at layers. As a scheme for the
continuous equation it is of first order and late by a factor of about 1 + step near consensus.

`solve_layers` is a template for `pipeline.integrate.compiled.bind`, with the recorder of
`pipeline.integrate.adaptive`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.integrate import events
from pipeline.integrate.adaptive import DONE, NOT_FINITE
from pipeline.integrate.atoms import clear, normalise
from pipeline.sphere import gaps, pairs
from pipeline.sphere.lanes import kernel

# bound by `compiled.bind`
average: Any = None  # what a layer adds (`pipeline.dynamics.fields.layer_average`)
on_save: Any = None
on_clusters: Any = None

_ROUNDING = 1e-9  # a save time this little (relative) before a layer shows that layer: 3 * 0.1 is not 0.3


class Workspace(NamedTuple):
    """The arrays that `solve_layers` works in; what they hold before means nothing."""

    x: NDArray[np.float64]
    mass: NDArray[np.float64]
    squares: NDArray[np.float64]
    member: NDArray[np.int64]
    labels: NDArray[np.int64]
    queue: NDArray[np.int64]
    together: NDArray[np.bool_]
    now_together: NDArray[np.bool_]
    shift: NDArray[np.float64]
    weight: NDArray[np.float64]
    scratch: NDArray[np.float64]
    p: NDArray[np.float64]

    @classmethod
    def of(cls, n: int, dimension: int) -> Workspace:
        """Room for n tokens."""
        stride = pairs.stride_of(n)
        size = dimension * stride
        return cls(
            x=np.empty(size),
            mass=np.empty(stride),
            squares=np.empty(stride),
            member=np.empty(n, np.int64),
            labels=np.empty(n, np.int64),
            queue=np.empty(n, np.int64),
            together=np.empty((n, n), np.bool_),
            now_together=np.empty((n, n), np.bool_),
            shift=np.empty(size),
            weight=np.empty(stride),
            scratch=np.empty(pairs.scratch_size(stride, dimension)),
            p=np.empty(3),
        )


@kernel
def _differ(together: Any, now_together: Any, n: int) -> bool:
    """Whether any entry differs; without a branch, since this is asked in every layer."""
    differs = False
    for i in range(n):
        for j in range(n):
            differs |= together[i, j] != now_together[i, j]
    return differs


def solve_layers(
    work: Workspace,
    tokens: Any,
    weights: Any,
    beta: float,
    normalised: float,
    matrices: Any,
    step: float,
    delta: float,
    log_times: Any,
    log_horizon: float,
    record: Any,
) -> Any:
    """Iterate the layers of one trajectory up to the horizon; returns (outcome, evaluations, steps)."""
    n, dimension = tokens.shape
    stride = pairs.stride_of(n)
    size = dimension * stride
    x, mass, squares, member = work.x, work.mass, work.squares, work.member
    labels, queue, together, now_together = work.labels, work.queue, work.together, work.now_together
    shift, weight, scratch, p = work.shift, work.weight, work.scratch, work.p
    x[:] = pairs.FAR
    mass[:], squares[:], shift[:] = 0.0, 0.0, 0.0
    total_mass = 0.0
    for i in range(n):
        for k in range(dimension):
            x[k * stride + i] = tokens[i, k]
        member[i] = i
        mass[i] = weights[i]
        squares[i] = weights[i] * weights[i]
        total_mass += weights[i]
    gaps.adjacency(x, n, stride, dimension, delta, together)
    clusters = gaps.components(together, n, labels, queue)
    on_clusters(record, -np.inf, 0, clusters, labels, member, 0.0, 0.0)
    p[0], p[1], p[2] = beta, normalised, 1.0 / total_mass
    layers = int(np.floor(np.exp(log_horizon) / step * (1.0 + _ROUNDING)))
    index = 0
    for layer in range(layers + 1):
        if layer > 0:
            average(x, mass, n, stride, dimension, p, matrices, shift, weight, scratch)
            for k in range(dimension):
                for i in range(n):
                    x[k * stride + i] += step * shift[k * stride + i]
            clear(x, mass, n, stride, dimension, pairs.FAR)
            normalise(x, n, stride, dimension)
            if not np.isfinite(x[:size].sum()):
                return NOT_FINITE, layer, layer
            gaps.adjacency(x, n, stride, dimension, delta, now_together)
            changed = _differ(together, now_together, n)
            for parting in (True, False):  # what parts in a layer parts before others join
                for i in range(n if changed else 0):
                    for j in range(i):
                        if together[i, j] == parting and now_together[i, j] != parting:
                            before = clusters
                            less, more = events.weights_joining(together, labels, mass, n, i, j)
                            clusters = events.flip(together, n, labels, queue, i, j, clusters)
                            if clusters != before:
                                now = np.log(layer * step)
                                on_clusters(record, now, before, clusters, labels, member, less, more)
        until = np.inf if layer == layers else np.log((layer + 1) * step * (1.0 - _ROUNDING))
        while index < log_times.size and log_times[index] < until:
            on_save(record, index, x, mass, squares, member, n, stride, dimension, beta, clusters)
            index += 1
    return DONE, layers, layers
