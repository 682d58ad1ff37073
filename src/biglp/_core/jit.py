"""Functions that the compiler LLVM makes for this processor when they are needed.

It comes with ``pip install "biglp[fast]"`` (llvmlite), is loaded in a twentieth of a second and
compiles a function in as much or twice that, once a process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
LOOPS = "compiled loops"
"""What whoever loads them calls them in its cost."""
COMPILER_BYTES = 16 << 20
"""What the compiler and what it has compiled take of memory."""


def has_compiler() -> bool:
    """Whether the compiler is installed; nothing is loaded."""
    return importlib.util.find_spec("llvmlite") is not None


@cache
def vector_lanes() -> int:
    """Numbers of four bytes in a vector of this processor; 0 where there is no compiler."""
    if not has_compiler():
        return 0
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 16
    return 8 if features.get("avx2") and features.get("fma") else 4


def compiled_once(make: Callable[P, T]) -> Callable[P, T]:
    """Remember what a function that compiles has made; threads that come meanwhile wait for it."""
    remembered, lock = cache(make), threading.Lock()

    @wraps(make)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return remembered(*args, **kwargs)  # type: ignore[arg-type]

    return once


class Compiled:
    """A function of a module, compiled.

    Parameters
    ----------
    function : llvmlite.ir.Function
        It takes pointers, and returns nothing.
    """

    def __init__(self, function: Any) -> None:
        from llvmlite import binding

        with suppress(RuntimeError):  # needed before release 0.45 of llvmlite, and refused later
            binding.initialize()
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=3,
        )
        module = binding.parse_assembly(str(function.module))
        self._engine = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(function.args))
        self._call = kind(self._engine.get_function_address(function.name))

    def __call__(self, *arrays: np.ndarray) -> None:
        """Call it with where arrays begin; other threads of Python go on meanwhile."""
        # A tenth of the time of ``ctypes.data``, which makes an object first.
        self._call(*(array.__array_interface__["data"][0] for array in arrays))
