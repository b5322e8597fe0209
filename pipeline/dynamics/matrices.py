"""Query, key and value matrices: one description that gives a d x d matrix for every d."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal["identity", "diagonal", "gaussian", "goe", "file"]
_ROLES = ("query", "key", "value")
LARGEST = 2**14  # dimension of a matrix that is not the identity: 2 GiB


@dataclass(frozen=True)
class Matrix:
    """A matrix of the attention, described for all dimensions d at once.

    Parameters
    ----------
    kind : {"identity", "diagonal", "gaussian", "goe", "file"}
        ``gaussian``: independent N(0, 1) entries, divided by sqrt(d). ``goe``: (G + G')/sqrt(2) with such G,
        so off-diagonal entries have variance 1/d and diagonal ones 2/d. One draw per (seed, role, d), shared
        by all cells: the weights of one model.
    diagonal : tuple of float
        The d entries, for ``diagonal``.
    seed : int
        Of the draw, for ``gaussian`` and ``goe``.
    scale : float
        Factor on the drawn matrix.
    path : str
        A ``.npy`` file with the d x d matrix, for ``file``.
    digest : str
        SHA-256 of that file. Empty: taken from the file now; given: the file must still match when it is
        read.

    Raises
    ------
    ValueError
        For an unknown kind, entries that are not finite, or parameters of another kind.
    """

    kind: Kind = "identity"
    diagonal: tuple[float, ...] = ()
    seed: int = 0
    scale: float = 1.0
    path: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind: got {self.kind!r}; allowed: {', '.join(get_args(Kind))}")
        if (self.kind == "diagonal") != bool(self.diagonal):
            raise ValueError(
                f"diagonal: got {self.diagonal!r} with kind={self.kind}; allowed: entries with kind=diagonal"
            )
        if not all(math.isfinite(entry) for entry in self.diagonal):
            raise ValueError(f"diagonal: got {self.diagonal!r}; allowed: finite numbers")
        if not math.isfinite(self.scale):
            raise ValueError(f"scale: got {self.scale!r}; allowed: a finite number")
        if self.seed < 0:
            raise ValueError(f"seed: got {self.seed!r}; allowed: integers >= 0")
        if (self.kind == "file") != bool(self.path):
            raise ValueError(
                f"path: got {self.path!r} with kind={self.kind}; allowed: a .npy file with kind=file"
            )
        if self.kind == "file" and not self.digest:
            object.__setattr__(self, "digest", _digest(self.path))

    @property
    def is_identity(self) -> bool:
        """Whether this is the identity for every d."""
        return self.kind == "identity"

    def resolve(self, d: int, role: str) -> NDArray[np.float64]:
        """The matrix for dimension d.

        Parameters
        ----------
        d : int
            Dimension.
        role : {"query", "key", "value"}
            Independent draws for the three; also names the key in errors.

        Returns
        -------
        ndarray of float64, shape (d, d)

        Raises
        ------
        ValueError
            If the diagonal or the file does not give a finite d x d matrix, or the file has changed.
        """
        if self.kind == "identity":
            return np.eye(d)
        if d > LARGEST:
            raise ValueError(
                f"dynamics.{role}.kind: got {self.kind} with grid.d = {d}; allowed: d up to {LARGEST}"
            )
        if self.kind == "diagonal":
            if len(self.diagonal) != d:
                raise ValueError(
                    f"dynamics.{role}.diagonal: got {len(self.diagonal)} entries; "
                    f"allowed: as many as grid.d = {d}"
                )
            return np.diag(np.array(self.diagonal, dtype=np.float64))
        if self.kind == "file":
            if _digest(self.path) != self.digest:
                raise ValueError(
                    f"dynamics.{role}.path: got {self.path}, changed since; allowed: SHA-256 {self.digest}"
                )
            try:
                matrix = np.load(self.path, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"dynamics.{role}.path: got {self.path} ({error}); allowed: a .npy file"
                ) from error
            if matrix.shape != (d, d) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
                raise ValueError(
                    f"dynamics.{role}.path: got shape {matrix.shape}, {matrix.dtype}; "
                    f"allowed: finite numbers, {d} x {d}"
                )
            return np.asarray(matrix, dtype=np.float64)
        stream = np.random.SeedSequence(self.seed, spawn_key=(_ROLES.index(role), d))
        draw = np.random.Generator(np.random.Philox(stream)).standard_normal((d, d))
        if self.kind == "goe":
            draw = (draw + draw.T) / math.sqrt(2)
        with np.errstate(over="ignore"):
            matrix = self.scale * draw / math.sqrt(d)
        if not np.isfinite(matrix).all():
            raise ValueError(
                f"dynamics.{role}.scale: got {self.scale!r}; allowed: numbers that make a finite matrix"
            )
        return np.asarray(matrix)


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(f"path: got {path} ({error.strerror}); allowed: a readable .npy file") from error
