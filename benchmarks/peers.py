"""The same question put to other programs: the mean share of pairs that are together, at given times.

Every function takes tokens (seeds, n, d), inverse temperatures (b,) and save times (T,), and returns that mean over
pairs and seeds, shape (b, T), and the evaluations of the field per trajectory. The fields are written as textbooks
do: a softmax average, self included, then a projection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.measure import log_times
from pipeline import observe
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive, Layers
from pipeline.sphere import in_span

TOGETHER = 1e-3  # <x, y> >= 1 - TOGETHER
STEP = 0.1  # of the published program

Answer = tuple[np.ndarray, float]


def spheresweep(
    tokens: np.ndarray, betas: np.ndarray, times: np.ndarray, integrator: Adaptive | Layers
) -> Answer:
    """This program, on one thread; as in a sweep, tokens are rotated into their span once for all beta."""
    tokens = np.stack([in_span(start) for start in tokens])
    found = observe.observe_cells(
        np.concatenate([tokens] * len(betas)),
        np.repeat(betas, len(tokens)),
        dynamics=Dynamics(),
        integrator=integrator,
        log_times=log_times(times),
        log_horizon=float(np.log(times[-1])),
        tolerance=TOGETHER,
        variables=("pair_sync_fraction",),
        clusters_kept=4,
    )
    share = found["pair_sync_fraction"].reshape(len(betas), len(tokens), len(times)).mean(axis=1)
    return share, found["evaluations"].mean()


def numpy_layers(tokens: np.ndarray, betas: np.ndarray, times: np.ndarray) -> Answer:
    """The published scheme, x <- normalise(x + step * attention), for all seeds at a time, in NumPy."""
    n = tokens.shape[1]
    share = np.empty((len(betas), len(times)))
    for b, beta in enumerate(betas):
        x = tokens.copy()
        for layer, saves in _layers(times):
            if layer:
                attention = x @ x.transpose(0, 2, 1)
                attention *= beta
                attention -= attention.max(axis=2, keepdims=True)
                np.exp(attention, out=attention)
                attention /= attention.sum(axis=2, keepdims=True)
                moved = attention @ x
                moved *= STEP
                moved += x
                x = moved / np.sqrt(np.einsum("bid,bid->bi", moved, moved))[:, :, None]
            if saves:
                together = np.count_nonzero(x @ x.transpose(0, 2, 1) > 1 - TOGETHER)
                share[b, saves] = (together / len(tokens) - n) / (n * (n - 1))
    return share, times[-1] / STEP


def torch_layers(tokens: np.ndarray, betas: np.ndarray, times: np.ndarray, masked: bool = False) -> Answer:
    """The published scheme as its authors' program iterates it: batched torch in float64, buffers reused.

    ``masked``: the diagonal is left out as that program does, by a mask that copies all other pairs. Without it,
    the diagonal is counted and subtracted, which is faster.
    """
    import torch

    n = tokens.shape[1]
    start = torch.from_numpy(tokens)
    scores, moved = torch.empty(len(tokens), n, n, dtype=torch.float64), torch.empty_like(start)
    share = np.empty((len(betas), len(times)))
    for b, beta in enumerate(betas):
        x = start.clone()
        for layer, saves in _layers(times):
            if layer:
                torch_step(x, float(beta), scores, moved)
            if saves:
                torch.matmul(x, x.transpose(1, 2), out=scores)
                if masked:
                    pairs = scores[~torch.eye(n).bool().expand(len(tokens), -1, -1)]
                    share[b, saves] = float((pairs > 1 - TOGETHER).sum() / len(pairs))
                else:
                    together = int((scores > 1 - TOGETHER).sum())
                    share[b, saves] = (together / len(tokens) - n) / (n * (n - 1))
    return share, times[-1] / STEP


def torch_step(x: Any, beta: float, scores: Any, moved: Any) -> None:
    """One step of the published scheme, in place."""
    import torch

    torch.matmul(x, x.transpose(1, 2), out=scores)
    scores *= beta
    attention = torch.nn.functional.softmax(scores, dim=2)
    torch.matmul(attention, x, out=moved)
    moved *= STEP
    moved += x
    torch.nn.functional.normalize(moved, dim=2, out=x)


def _layers(times: np.ndarray) -> list[tuple[int, list[int]]]:
    """Layers up to the last time, and which save times each one shows: those that it is the first to reach."""
    count = round(float(times[-1]) / STEP)
    shown = np.ceil(times / STEP - 1e-9).astype(int)
    return [(layer, np.flatnonzero(shown == layer).tolist()) for layer in range(count + 1)]


def scipy_ivp(tokens: np.ndarray, betas: np.ndarray, times: np.ndarray, tolerance: float) -> Answer:
    """One trajectory after the other by SciPy's DOP853."""
    seeds, n, d = tokens.shape
    share, evaluations = np.zeros((len(betas), len(times))), 0
    for b, beta in enumerate(betas):
        for start in tokens:

            def velocity(_: float, y: np.ndarray, beta: float = beta) -> np.ndarray:
                x = y.reshape(n, d)
                scores = beta * (x @ x.T)
                attention = np.exp(scores - scores.max(axis=1, keepdims=True))
                average = attention @ x / attention.sum(axis=1, keepdims=True)
                return (average - np.einsum("id,id->i", average, x)[:, None] * x).ravel()

            found = solve_ivp(
                velocity,
                (0.0, times[-1]),
                start.ravel(),
                method="DOP853",
                t_eval=times,
                rtol=tolerance,
                atol=tolerance,
            )
            x = found.y.T.reshape(len(times), n, d)
            together = np.count_nonzero(x @ x.transpose(0, 2, 1) > 1 - TOGETHER, axis=(1, 2))
            share[b] += (together - n) / (n * (n - 1)) / seeds
            evaluations += found.nfev
    return share, evaluations / (seeds * len(betas))


class Diffrax:
    """Diffrax, vmapped over all trajectories, each with its own steps; compiled when it is made."""

    def __init__(self, solver: str, tolerance: float, shape: tuple[int, int], times: np.ndarray) -> None:
        import diffrax
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        n, _ = shape
        method = getattr(diffrax, solver)()
        self.stages = method.tableau.num_stages - int(method.tableau.fsal)

        def velocity(_: Any, x: Any, beta: Any) -> Any:
            average = jax.nn.softmax(beta * (x @ x.T), axis=1) @ x
            return average - jnp.sum(average * x, axis=1, keepdims=True) * x

        def together(_: Any, x: Any, beta: Any) -> Any:
            return (jnp.sum(x @ x.T > 1 - TOGETHER) - n) / (n * (n - 1))

        def solve(start: Any, beta: Any) -> Any:
            found = diffrax.diffeqsolve(
                diffrax.ODETerm(velocity),
                method,
                t0=0.0,
                t1=float(times[-1]),
                dt0=None,
                y0=start,
                args=beta,
                saveat=diffrax.SaveAt(ts=jnp.asarray(times), fn=together),
                stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
                max_steps=100_000,
            )
            return found.ys, found.stats["num_steps"]

        over_seeds = jax.vmap(solve, in_axes=(0, None))
        self.solve = jax.jit(jax.vmap(over_seeds, in_axes=(None, 0)))

    def __call__(self, tokens: np.ndarray, betas: np.ndarray, times: np.ndarray) -> Answer:
        share, steps = self.solve(tokens, betas)
        return np.asarray(share).mean(axis=1), float(np.asarray(steps).mean()) * self.stages
