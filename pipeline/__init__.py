"""spheresweep: how tokens cluster under self-attention, one trajectory or a sweep of millions at a time."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.observe import simulate

__version__ = version("spheresweep")
__all__ = ["__version__", "simulate"]


def __getattr__(name: str) -> Any:
    # `simulate` compiles kernels' modules on import: only who asks for it waits for that
    if name == "simulate":
        from pipeline.observe import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
