"""What the physics tests share."""

from __future__ import annotations

import pytest

from pipeline.integrate import Adaptive


@pytest.fixture(scope="session")
def tight() -> Adaptive:
    """An integrator whose own error does not show: the tolerance that the exactness laws are stated for."""
    return Adaptive(tolerance=1e-12)
