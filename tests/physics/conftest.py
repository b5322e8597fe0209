"""Settings of the physics tests: property tests draw the same examples every time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "physics", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
