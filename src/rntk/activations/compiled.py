"""How the library compiles: one decorator's worth of decisions, in one place.

In goes a plain Python function and an explicit signature; out comes machine code, kept on disk (`code_cache`).
Signatures are explicit so that compiled functions can be handed to compiled functions as values: a sweep receives the
activation it applies, and neither knows the other's source.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.experimental.function_type import _get_wrapper_address
from numba.extending import intrinsic

from .code_cache import CodeCache

#: Fused multiply-add is allowed. Nothing else is: reassociation would make results depend on how a loop was
#: vectorised, and `nnan`/`ninf` would make tests for NaN and infinity lie.
FASTMATH = {"contract"}


#: Compiled code works on memory it is given: without reference counting, slices are free. Counting is atomic; in a
#: loop that cuts a few slices per step it cost more than the arithmetic, most of all where threads share an array.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "_nrt": False}

#: For functions that only compiled ones call: what Python and C need to call them isn't made.
INSIDE = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def compile_function(
    function: Callable[..., Any], signature: Any, *, allocates: bool = False, pointer: bool = False
) -> Any:
    """`function` compiled for `signature`, releasing the GIL, from the disk cache where possible.

    `allocates` if it creates arrays, `pointer` if compiled code is to call it through one.
    """
    options = OPTIONS | {"_nrt": allocates, "no_cfunc_wrapper": not pointer}
    dispatcher = njit(**options)(function)
    dispatcher._cache = CodeCache(function, options)
    collecting = gc.isenabled()
    gc.disable()  # Numba makes a million objects and few cycles: looking for them took a seventh of the time
    try:
        dispatcher.compile(signature)
    finally:
        if collecting:
            gc.enable()
    dispatcher.disable_compile()
    return dispatcher


class FunctionPointer(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as a value for compiled functions, its address looked up once.

    Handing over the dispatcher itself works too, but looks the address up anew in every call, for 0.1 ms each.
    """

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        self.dispatcher = dispatcher
        self._signature = signature
        self._address = _get_wrapper_address(dispatcher, signature)

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return self._signature

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)


@cache
def compile_pointer(function: Callable[..., Any], signature: Any, *, allocates: bool = False) -> FunctionPointer:
    """`function` compiled for `signature`, ready to be passed to compiled functions."""
    return FunctionPointer(compile_function(function, signature, allocates=allocates, pointer=True), signature)


def inlined(function: Callable[..., Any]) -> Any:
    """`function` for use inside compiled functions only; LLVM inlines it unless it asks for `wide_vectors`."""
    return njit(**INSIDE)(function)


def part_of_loop(function: Callable[..., Any]) -> Any:
    """`function` for use inside a compiled loop: inlined however long it is, or the loop would not be vectorised."""
    return njit(**INSIDE, forceinline=True)(function)


@intrinsic
def wide_vectors(typing_context: Any) -> Any:
    """Ask LLVM for 512-bit vectors in the function this is called from.

    On processors with AVX-512 LLVM prefers 256 bits unless asked, because light use can lower the clock; the
    pair loops are dense chains of multiply-adds, where the full width measured 1.3 to 1.5 times faster. It is
    a preference only: elsewhere it changes nothing, and never a result, since lanes don't interact. The function
    is kept from being inlined, because the preference belongs to a function and would be lost in its caller.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite only accepts attributes it knows; its set is a plain set underneath.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def no_overlap(typing_context: Any) -> Any:
    """Promise LLVM that no two arrays given to the function this is called from overlap.

    Without the promise a loop over a dozen of them begins with a hundred comparisons of addresses, or isn't vectorised
    at all.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for argument in builder.function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.void(), codegen


def horner(coefficients: Sequence[float], dtype: type[np.floating[Any]]) -> Callable[[Any], Any]:
    """The polynomial Σ cₖ vᵏ as a function without a loop, its constants of `dtype`.

    Unrolled by writing the nested expression out: a loop over a tuple is not unrolled early enough for the
    loop around it to be vectorised.
    """
    names = {f"c{k}": dtype(value) for k, value in enumerate(coefficients)}
    expression = f"c{len(coefficients) - 1}"
    for k in range(len(coefficients) - 2, -1, -1):
        expression = f"({expression} * v + c{k})"
    exec(f"def polynomial(v):\n    return {expression}\n", names)  # our own constants, nothing from outside
    return names["polynomial"]  # type: ignore[return-value]
