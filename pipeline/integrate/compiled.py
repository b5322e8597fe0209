"""One template, many products: bind a compiled loop to its field and recorder.

A template is an ordinary function that calls some module-level names (`velocity`, `on_save`, ...). `bind`
makes a copy in which those names are the given functions. If all of them are compiled the copy is compiled
too, as a kernel (see `pipeline.sphere.lanes`), and cached on disk: a second process loads it. If one is a
plain Python function the copy stays plain Python and runs the very same steps, with every array operation
still compiled.

numba names a cache file after the qualified name of a function and looks only at that function's own file for
changes; the copy's name therefore holds the bound functions and a digest of all sources that can be part of
it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

from pipeline.sphere.lanes import KERNEL

_PACKAGE = Path(__file__).resolve().parents[1]
_SOURCES = ("sphere", "dynamics", "integrate", "observe")


@cache
def _digest() -> str:
    total = hashlib.sha256()
    for root in _SOURCES:
        path = _PACKAGE / root
        for file in sorted(path.rglob("*.py")):
            total.update(file.read_bytes())
    return total.hexdigest()[:16]


def bind(template: Any, **functions: Any) -> Any:
    """Copy ``template`` with the module-level names in ``functions`` bound to the given functions.

    Parameters
    ----------
    template : function
        Plain Python; each name in ``functions`` is a global that it calls.
    **functions
        Compiled (numba) or plain functions.

    Returns
    -------
    function
        Compiled if all ``functions`` are.
    """
    copy = FunctionType(
        template.__code__, {**template.__globals__, **functions}, template.__name__, template.__defaults__
    )
    copy.__module__ = template.__module__
    names = " ".join(function.__name__ for function in functions.values())
    copy.__name__ = f"{template.__name__}_{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    copy.__qualname__ = f"{copy.__name__}_{_digest()}"  # a file's name, so short
    if all(isinstance(function, Dispatcher) for function in functions.values()):
        return njit(cache=True, **KERNEL)(copy)
    return copy
