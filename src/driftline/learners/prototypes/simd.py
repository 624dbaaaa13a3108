"""Sums over features of several rows with many columns at once, each feature by feature and held in registers.

A processor can add up eight numbers at a time, and several such vectors while it waits for a first. Loops in Python,
even compiled, put every sum back into memory, which takes twice as long; so this one is built from the instructions of
LLVM. A product enters its sum without being rounded before, where the processor can do that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range
from numba.extending import intrinsic

SIMD_WIDTH = 8
VECTOR = ir.VectorType(ir.FloatType(), SIMD_WIDTH)


def dot_kernel(rows: int, vectors: int, euclidean: bool) -> Callable[..., None]:
    """A function `(a, b, out)` for compiled loops, which sets out[i, j] for `rows` rows and 8 `vectors` columns.

    It is the sum over k of a[i, k] * b[k, j] or, `apart`, of -(a[i, k] - b[k, j])^2. The arrays hold float32, and the
    numbers of a row stand side by side. Nothing is checked: they must be large enough.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        a, b, out = (
            context.make_array(kind)(context, builder, x) for kind, x in zip(signature.args, args, strict=True)
        )
        nothing = ir.Constant(VECTOR, [0.0] * SIMD_WIDTH)
        sums = [[alloca_once_value(builder, nothing) for _ in range(vectors)] for _ in range(rows)]
        with for_range(builder, builder.extract_value(a.shape, 1)) as loop:
            columns = [builder.load(address(builder, b, loop.index, v * SIMD_WIDTH), align=4) for v in range(vectors)]
            for i in range(rows):
                one = broadcast(builder, builder.load(address(builder, a, i, loop.index, ir.FloatType())))
                for total, column in zip(sums[i], columns, strict=True):
                    builder.store(accumulate(builder, builder.load(total), one, column, euclidean), total)
        for i in range(rows):
            for v, total in enumerate(sums[i]):
                builder.store(builder.load(total), address(builder, out, i, v * SIMD_WIDTH), align=4)
        return context.get_dummy_value()

    @intrinsic
    def summed(typing: Any, a: Any, b: Any, out: Any) -> Any:
        return types.void(a, b, out), generate

    summed_: Callable[..., None] = summed
    return summed_


def address(builder: Any, array: Any, row: Any, column: Any, kind: ir.Type = VECTOR) -> Any:
    """Where the numbers from this row and column on stand, as one vector or as something else."""
    row, column = (x if isinstance(x, ir.Value) else ir.Constant(ir.IntType(64), x) for x in (row, column))
    start = builder.mul(row, builder.extract_value(array.strides, 0))
    at = builder.add(start, builder.mul(column, ir.Constant(ir.IntType(64), 4)))
    byte = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(byte, [at]), kind.as_pointer())


def broadcast(builder: Any, number: Any) -> Any:
    """A vector of one number."""
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, first, ir.Constant(ir.VectorType(ir.IntType(32), SIMD_WIDTH), [0] * SIMD_WIDTH)
    )


def accumulate(builder: Any, total: Any, a: Any, b: Any, euclidean: bool) -> Any:
    """A sum with one more feature in it."""
    fused = ("contract",)
    if not euclidean:
        return builder.fadd(total, builder.fmul(a, b, flags=fused), flags=fused)
    difference = builder.fsub(a, b)
    return builder.fsub(total, builder.fmul(difference, difference, flags=fused), flags=fused)
