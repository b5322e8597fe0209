"""Eight float64 numbers that travel together: explicit SIMD for the kernels.

LLVM vectorises a plain loop over pairs only in part: masked remainders, stores into a second row and the
exponential each defeat it. A value of type ``lanes`` is one LLVM ``<8 x double>``: one register where the
processor has 512 bits, two where it has 256, four on ARM, with the same results per lane everywhere that
fused multiply-add exists. Arithmetic is written with the ordinary operators; a float64 operand is spread
over all lanes. The compiler may fuse or reorder nothing: where a product is fused into a sum the code says
`fma`, so a result has the same bits wherever and whenever a kernel is compiled, inlined or loaded from a
cache.

Conventions: an array handed to `load` and `store` is one-dimensional and contiguous; the index counts
float64s and the eight read or written must lie inside it (not checked).
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic
from numba.extending import models, overload, register_model

# How kernels are compiled: without the GIL, and without counting references, which would cost more than a
# small sum. So a kernel makes no array: what it works in belongs to its caller.
KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
kernel: Any = njit(**KERNEL)

WIDTH = 8
intrinsic: Any = _intrinsic  # its annotations describe neither what it takes nor what it gives

_F64, _I32, _I64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_F64, WIDTH)
_BITS = ir.VectorType(_I64, WIDTH)


class Lanes(types.Type):
    """The numba type of eight float64 lanes."""

    def __init__(self) -> None:
        super().__init__(name="float64x8")


lanes: Any = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend_type: Any) -> None:
        super().__init__(manager, frontend_type, _VECTOR)  # type: ignore[no-untyped-call]


_declare: Any = cgutils.get_or_insert_function


def _spread(builder: Any, scalar: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.bitcast(builder.gep(array.data, [index]), _VECTOR.as_pointer())


@intrinsic
def keep_rolled(typing: Any) -> Any:
    """In the body of a loop whose length the compiler does not know: it is not unrolled.

    A loop over many lanes that fills the registers spills them when it is unrolled.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.FunctionType(ir.VoidType(), [])
        builder.asm(nothing, "", "", [], True).attributes.add("convergent")
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Lanes ``array[index : index + 8]``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, signature, args))
        value.align = 8
        return value

    return lanes(array, index), build


@intrinsic
def each(typing: Any, array: Any, index: Any) -> Any:
    """All lanes equal to ``array[index]``; spares the test for a negative index."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        index = context.cast(builder, args[1], signature.args[1], types.intp)
        return _spread(builder, builder.load(builder.gep(array.data, [index])), _VECTOR)

    return lanes(array, index), build


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write ``value`` to ``array[index : index + 8]``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature, args)).align = 8
        return context.get_dummy_value()

    return types.void(array, index, lanes), build


@intrinsic
def splat(typing: Any, x: Any) -> Any:
    """All lanes equal to the float64 ``x``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0], _VECTOR)

    return lanes(types.float64), build


@intrinsic
def total(typing: Any, x: Any) -> Any:
    """Sum of the lanes, by halves: (0+4, 1+5, ...), then (0+2, ...), then 0+1."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_F64, [_F64, _VECTOR])
        reduce = _declare(builder.module, kind, "llvm.vector.reduce.fadd.v8f64")
        return builder.call(reduce, [ir.Constant(_F64, 0.0), args[0]], fastmath=("reassoc",))

    return types.float64(lanes), build


def _rotation(name: str, by: int, doc: str) -> Any:
    def function(typing: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            order = ir.Constant(ir.VectorType(_I32, WIDTH), [(lane + by) % WIDTH for lane in range(WIDTH)])
            return builder.shuffle_vector(args[0], args[0], order)

        return lanes(x), build

    function.__name__, function.__doc__ = name, doc
    return intrinsic(function)


turned = _rotation("turned", 1, "The lanes in the order 1, 2, ..., 7, 0.")
opposite = _rotation("opposite", 4, "The lanes in the order 4, ..., 7, 0, ..., 3.")


# the three rounds in which rows become columns: which lanes of (a, b) make a row, how far apart a and b are
_ROUNDS = (
    (1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    (2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    (4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


@intrinsic
def transposed(typing: Any, rows: Any) -> Any:
    """Eight lanes from eight (a tuple): lane q of row r becomes lane r of row q."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = cgutils.unpack_tuple(builder, args[0], WIDTH)  # type: ignore[no-untyped-call]
        for apart, low, high in _ROUNDS:
            for a in (q for q in range(WIDTH) if not q & apart):
                pair = found[a], found[a + apart]
                found[a], found[a + apart] = (
                    builder.shuffle_vector(*pair, ir.Constant(ir.VectorType(_I32, WIDTH), list(order)))
                    for order in (low, high)
                )
        return context.make_tuple(builder, signature.return_type, found)

    columns: Any = types.UniTuple(lanes, WIDTH)  # type: ignore[no-untyped-call]
    return columns(rows), build


@intrinsic
def root(typing: Any, x: Any) -> Any:
    """Square root per lane."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        return builder.call(_declare(builder.module, kind, "llvm.sqrt.v8f64"), [args[0]])

    return lanes(lanes), build


def _extremum(name: str, operation: str, doc: str) -> Any:
    def function(typing: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(_F64, [_VECTOR])
            reduce = _declare(builder.module, kind, f"llvm.vector.reduce.{operation}.v8f64")
            return builder.call(reduce, [args[0]])

        return types.float64(lanes), build

    function.__name__, function.__doc__ = name, doc
    return intrinsic(function)


lowest = _extremum("lowest", "fmin", "Smallest of the lanes.")
highest = _extremum("highest", "fmax", "Largest of the lanes.")


def _comparison(name: str, test: str, doc: str) -> Any:
    def function(typing: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(test, args[0], args[1]), args[1], args[0])

        return lanes(lanes, lanes), build

    function.__name__, function.__doc__ = name, doc
    return intrinsic(function)


larger = _comparison("larger", "<", "Per lane the larger of x and y; a NaN in x stays.")
smaller = _comparison("smaller", ">", "Per lane the smaller of x and y; a NaN in x stays.")


@intrinsic
def where_not_above(typing: Any, x: Any, bound: Any, value: Any) -> Any:
    """Per lane ``value`` where x <= bound (a float64), else 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        test = builder.fcmp_ordered("<=", args[0], _spread(builder, args[1], _VECTOR))
        return builder.select(test, args[2], ir.Constant(_VECTOR, [0.0] * WIDTH))

    return lanes(lanes, types.float64, lanes), build


@intrinsic
def which_not_above(typing: Any, x: Any, bound: Any) -> Any:
    """An integer whose bit number q is set if lane q <= bound (a float64)."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        test = builder.fcmp_ordered("<=", args[0], _spread(builder, args[1], _VECTOR))
        return builder.zext(builder.bitcast(test, ir.IntType(WIDTH)), _I64)

    return types.int64(lanes, types.float64), build


@intrinsic
def where_above(typing: Any, x: Any, y: Any, value: Any) -> Any:
    """Per lane ``value`` where x > y, else 0; what ``value`` is elsewhere does not matter."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        test = builder.fcmp_ordered(">", args[0], args[1])
        return builder.select(test, args[2], ir.Constant(_VECTOR, [0.0] * WIDTH))

    return lanes(lanes, lanes, lanes), build


@intrinsic
def replace(typing: Any, x: Any, lane: Any, value: Any) -> Any:
    """``x`` with lane number ``lane`` set to the float64 ``value``; unchanged if there is no such lane."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = context.cast(builder, args[1], signature.args[1], types.int64)
        here = builder.icmp_signed(
            "==", _spread(builder, index, _BITS), ir.Constant(_BITS, list(range(WIDTH)))
        )
        return builder.select(here, _spread(builder, args[2], _VECTOR), args[0])

    return lanes(lanes, lane, types.float64), build


_EIGHTHS = [2.0 ** (part / 8) for part in range(8)]


@intrinsic
def eighth(typing: Any, shifted: Any) -> Any:
    """2**(e / 8) per lane, e the last three bits of ``shifted``: one instruction where there are 512 bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], _BITS)
        if "+avx512f" in context.codegen().magic_tuple()[-1]:
            kind = ir.FunctionType(_VECTOR, [_VECTOR, _BITS])
            pick = _declare(builder.module, kind, "llvm.x86.avx512.permvar.df.512")
            return builder.call(pick, [ir.Constant(_VECTOR, _EIGHTHS), bits])
        table = cgutils.global_constant(  # type: ignore[no-untyped-call]
            builder.module, "eighths", ir.Constant(ir.ArrayType(_F64, WIDTH), _EIGHTHS)
        )
        places = builder.and_(bits, ir.Constant(_BITS, [WIDTH - 1] * WIDTH))
        found = ir.Constant(_VECTOR, ir.Undefined)
        for lane in (ir.Constant(_I32, lane) for lane in range(WIDTH)):
            entry = builder.gep(table, [ir.Constant(_I64, 0), builder.extract_element(places, lane)], True)
            found = builder.insert_element(found, builder.load(entry), lane)
        return found

    return lanes(shifted), build


@intrinsic
def scaled(typing: Any, x: Any, shifted: Any) -> Any:
    """X * 2**k per lane, where ``shifted`` holds the integer 8 k + e, 0 <= e < 8, in its last bits.

    Added to the exponent of x, so neither may leave the range of normal numbers.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = builder.lshr(builder.bitcast(args[1], _BITS), ir.Constant(_BITS, [3] * WIDTH))
        bits = builder.shl(whole, ir.Constant(_BITS, [52] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(args[0], _BITS), bits), _VECTOR)

    return lanes(x, shifted), build


def _fused(name: str, negative: bool, doc: str) -> Any:
    def function(typing: Any, x: Any, y: Any, z: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            a, b, c = (
                value if kind == lanes else _spread(builder, value, _VECTOR)
                for value, kind in zip(args, signature.args, strict=True)
            )
            kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
            fused = _declare(builder.module, kind, "llvm.fma.v8f64")
            return builder.call(fused, [builder.fneg(a) if negative else a, b, c])

        operands = [kind if kind == lanes else types.float64 for kind in (x, y, z)]
        return lanes(*operands), build

    function.__name__, function.__doc__ = name, doc
    return intrinsic(function)


fma = _fused("fma", False, "x * y + z per lane, rounded once; each operand is lanes or a float64.")
fnma = _fused("fnma", True, "z - x * y per lane, rounded once; each operand is lanes or a float64.")


def _arithmetic(symbol: Any, instruction: str) -> None:
    @intrinsic
    def operation(typing: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            operands = [
                value
                if kind == lanes
                else _spread(builder, context.cast(builder, value, kind, types.float64), _VECTOR)
                for value, kind in zip(args, signature.args, strict=True)
            ]
            return getattr(builder, instruction)(*operands)

        return lanes(x, y), build

    @overload(symbol)
    def implement(x: Any, y: Any) -> Any:
        if lanes in (x, y) and all(kind == lanes or isinstance(kind, types.Number) for kind in (x, y)):

            def apply(x: Any, y: Any) -> Any:
                return operation(x, y)

            # numba names symbols by qualified name: products loaded from different caches must not share one
            apply.__qualname__ = f"lanes_{instruction}"
            return apply
        return None


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_symbol, _instruction)


@kernel
def summed(rows: Any) -> Any:
    """Per lane the sum of eight lanes (a tuple)."""
    low, high = (rows[0] + rows[1]) + (rows[2] + rows[3]), (rows[4] + rows[5]) + (rows[6] + rows[7])
    return low + high


@kernel
def mixed(e: Any, x: Any, at: int, start: Any) -> Any:
    """``start`` plus the eight numbers from x[at] on, each times its lanes in ``e``."""
    f = fma(e[0], each(x, at), fma(e[2], each(x, at + 2), start))
    g = fma(e[1], each(x, at + 1), e[3] * each(x, at + 3))
    f = fma(e[4], each(x, at + 4), fma(e[6], each(x, at + 6), f))
    g = fma(e[5], each(x, at + 5), fma(e[7], each(x, at + 7), g))
    return f + g
