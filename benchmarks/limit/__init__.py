"""The recursion in plain C, built where there is a compiler: how close to the machine the library is."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("limit.c")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")


def build(*flags: str) -> Callable[..., np.ndarray] | None:
    """theta(readout, x, σ_w², σ_b): the upper triangle of Θ by plain C; None where there is no gcc.

    `flags` are more of its options: "-mno-avx512f" compiles for AVX2, say.
    """
    if shutil.which("gcc") is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="rntk-limit-"))
    libraries = {}
    for dtype in ("float64", "float32"):
        target = folder / f"{dtype}.so"
        single = ["-DSINGLE"] if dtype == "float32" else []
        command = ["gcc", *FLAGS, *flags, *single, str(SOURCE), "-lm", "-o", str(target)]
        subprocess.run(command, check=True)
        libraries[dtype] = ctypes.CDLL(str(target))

    def theta(readout: str, x: np.ndarray, sigma_w2: float = 2.0, sigma_b: float = 0.0) -> np.ndarray:
        x = np.ascontiguousarray(x)
        out = np.zeros((len(x), len(x)), x.dtype)
        real = ctypes.c_double if x.dtype == np.float64 else ctypes.c_float
        function = getattr(libraries[x.dtype.name], f"{readout}_{x.dtype.name}")
        pointer = ctypes.POINTER(real)
        function(
            x.ctypes.data_as(pointer),
            ctypes.c_int(len(x)),
            ctypes.c_int(x.shape[1]),
            real(sigma_w2),
            real(sigma_b),
            out.ctypes.data_as(pointer),
        )
        return out

    return theta
