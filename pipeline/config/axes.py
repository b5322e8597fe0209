"""The grammar of an axis: what a person writes becomes sorted, distinct numbers.

An axis is one number, a list of numbers, or ``{start, stop, num, spacing: linear|log}``. All arithmetic
is decimal and every value is rounded to 12 significant digits, so that 0.3 and 0.1*3, or a ``linspace``
and the same values typed by hand, are one cell and never two that print alike.
"""

from __future__ import annotations

import decimal
import difflib
import itertools
import math
from collections.abc import Iterator
from typing import Any

DIGITS = 12
MOST = 10_000_000  # values on one axis
LINEAR, LOG, LOG_TIME = "linear", "log", "log_time"

_EXACT = decimal.Context(prec=50)
_KEYS = ("start", "stop", "num", "spacing")


def axis(
    value: Any, *, key: str, integer: bool, spacings: tuple[str, ...] = (LINEAR, LOG)
) -> tuple[int, ...] | tuple[float, ...]:
    """Values of the axis that `value` describes, sorted and distinct.

    Parameters
    ----------
    value : int, float, list or dict
        As composed from files and the command line: a number, a list of numbers, or a mapping with
        ``start``, ``stop``, ``num`` and optionally ``spacing``.
    key : str
        Where it stands in the configuration; errors begin with it.
    integer : bool
        Whether the values are whole numbers (``n``, ``d``, ``seed``).
    spacings : tuple of str
        The spacings that this axis knows. ``log_time`` is linear: start and stop are logarithms already.

    Raises
    ------
    ValueError
        One line: the key, what was given, what is allowed.
    """
    if isinstance(value, dict):
        exact = list(_spaced(value, key=key, spacings=spacings))
    else:
        items = value if isinstance(value, list) else [value]
        exact = [_number(item, key=key, given=value, spacings=spacings) for item in items]
    if not exact:
        raise ValueError(f"{key}: got an empty list; allowed: at least one value")
    values = sorted(_whole(x, key=key) if integer else rounded(x) for x in exact)
    for left, right in itertools.pairwise(values):
        if left == right:
            raise ValueError(
                f"{key}: got {left} twice; allowed: distinct values (to {DIGITS} significant digits)"
            )
    return tuple(values)


def rounded(x: float | decimal.Decimal) -> float:
    """The float64 nearest to `x` rounded to 12 significant decimal digits; -0.0 becomes 0.0."""
    exact = x if isinstance(x, decimal.Decimal) else _decimal(x)
    return float(format(exact, f".{DIGITS}g")) + 0.0


def shown(value: Any) -> str:
    """What was given, as its author would write it, cut short."""
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(shown(item) for item in value[:8]) + (", …]" if len(value) > 8 else "]")
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = repr(value)
    else:
        text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def forms(spacings: tuple[str, ...]) -> str:
    """The forms of an axis, for the end of an error line."""
    return f"a number, a list of numbers, or {{start, stop, num, spacing: {'|'.join(spacings)}}}"


def _spaced(value: dict[Any, Any], *, key: str, spacings: tuple[str, ...]) -> Iterator[decimal.Decimal]:
    for name in value:
        if name not in _KEYS:
            near = difflib.get_close_matches(str(name), _KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"{key}.{name}: unknown key, got {shown(value[name])}{hint}; allowed: {', '.join(_KEYS)}"
            )
    for name in ("start", "stop", "num"):
        if value.get(name) is None:
            raise ValueError(f"{key}.{name}: missing in {shown(value)}; allowed: {forms(spacings)}")
    spacing = value.get("spacing", LINEAR)
    if spacing not in spacings:
        raise ValueError(f"{key}.spacing: got {shown(spacing)}; allowed: {', '.join(spacings)}")
    num = value["num"]
    if isinstance(num, bool) or not isinstance(num, int) or not 1 <= num <= MOST:
        raise ValueError(f"{key}.num: got {shown(num)}; allowed: whole numbers from 1 to {MOST}")
    start = _number(value["start"], key=f"{key}.start", given=value["start"], spacings=())
    stop = _number(value["stop"], key=f"{key}.stop", given=value["stop"], spacings=())
    if spacing == LOG and start <= 0:
        raise ValueError(f"{key}.start: got {shown(value['start'])}; allowed with spacing: log: numbers > 0")
    if start > stop or (start == stop) != (num == 1):
        raise ValueError(
            f"{key}: got {shown(value)}; allowed: start < stop and num >= 2 (or start = stop and num: 1)"
        )
    if num == 1:
        yield start
        return
    first, last = (_EXACT.ln(start), _EXACT.ln(stop)) if spacing == LOG else (start, stop)
    step = _EXACT.divide(_EXACT.subtract(last, first), decimal.Decimal(num - 1))
    yield start
    for i in range(1, num - 1):
        x = _EXACT.fma(step, decimal.Decimal(i), first)
        yield _EXACT.exp(x) if spacing == LOG else x
    yield stop


def _number(item: Any, *, key: str, given: Any, spacings: tuple[str, ...]) -> decimal.Decimal:
    if isinstance(item, bool) or not isinstance(item, int | float) or not math.isfinite(item):
        allowed = forms(spacings) if spacings else "a number"
        among = f" in {shown(given)}" if item is not given else ""
        raise ValueError(f"{key}: got {shown(item)}{among}; allowed: {allowed}, all finite")
    return _decimal(item)


def _decimal(x: float) -> decimal.Decimal:
    return decimal.Decimal(x if isinstance(x, int) else repr(float(x)))


def _whole(x: decimal.Decimal, *, key: str) -> int:
    nearest = int(x.to_integral_value())
    if abs(x - nearest) > abs(x).scaleb(-DIGITS):
        raise ValueError(f"{key}: got {rounded(x)}; allowed: whole numbers")
    return nearest
