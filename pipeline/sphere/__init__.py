"""Compiled geometry of tokens on the unit sphere S^{d-1}: initial tokens, pair sums, gaps and components."""

from pipeline.sphere.tokens import in_span, initial_tokens

__all__ = ["in_span", "initial_tokens"]
