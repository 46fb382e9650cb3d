"""Compiled code on disk, from one process to the next: never a wrong one, and never in the way.

One file holds one function for one signature and processor, behind a digest: what a broken disk or another program made
of it is noticed before it runs. The folder is named after the sources that can be compiled into one another, because
Numba's own cache looks at a function's own file alone; so a change in any of them starts a new folder.
"""

from __future__ import annotations

import pickle
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from ..errors import warn
from ..runtime import announce, replacing

PACKAGE = Path(__file__).parents[1]
#: Folders that are kept: of other sources, or of other versions of Python and Numba. The oldest go first.
KEPT = 8

_said: set[str] = set()


@cache
def code_folders() -> list[Path]:
    """Where compiled code may lie, best first."""
    digest = sha256(f"{sys.version} {numba.__version__}".encode())
    for file in sorted([*PACKAGE.glob("activations/*.py"), *PACKAGE.glob("engine/**/*.py")]):
        digest.update(file.name.encode() + file.read_bytes())
    given = numba.config.CACHE_DIR
    homes = [given] if given else [PACKAGE / "__pycache__", AppDirs("rntk", appauthor=False).user_cache_dir]
    return [Path(home, "rntk-compiled", digest.hexdigest()[:16]) for home in homes]


class CodeCache(NullCache):  # type: ignore[misc]
    """What Numba asks for compiled code of `function`; `options` are those that it is compiled with."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._source = Path(function.__code__.co_filename)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        for path in self._paths(signature, target_context.codegen()):
            try:
                data = path.read_bytes()
                if sha256(data[32:]).digest() != data[:32]:
                    raise ValueError("the file changed after being written")
                return CompileResult._rebuild(target_context, *pickle.loads(data[32:]))
            except OSError:
                continue
            except Exception as error:  # whatever unpickling and LLVM may say to code that isn't what they expect
                _complain(path, "can't be used and is compiled anew", error)
        announce("compiling for this machine, once; a few seconds")
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if result.lifted or result.library.has_dynamic_globals:
            return
        data, problem = dumps(result._reduce()), None
        for path in self._paths(signature, result.codegen):
            try:
                if not path.parent.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    _forget_old(path.parent.parent)
                with replacing(path, "wb") as file:
                    file.write(sha256(data).digest() + data)
                return
            except OSError as error:
                problem = path, error
        if problem:
            _complain(problem[0], "can't be kept, so every process compiles anew", problem[1])

    def _paths(self, signature: Any, codegen: Any) -> list[Path]:
        """Files that may hold the code; none for a function typed at a prompt: nothing tells when it changes."""
        if not self._source.is_file():
            return []
        code, cells = self._function.__code__, self._function.__closure__ or ()
        facts = self._function.__module__, code.co_firstlineno, self._options, str(signature), codegen.magic_tuple()
        frozen = dumps([cell.cell_contents for cell in cells])
        key = sha256(repr(facts).encode() + code.co_code + frozen + self._source.read_bytes()).hexdigest()
        return [folder / f"{self._function.__name__}-{key[:32]}" for folder in code_folders()]


def _complain(path: Path, what: str, error: Exception) -> None:
    if "warning" not in _said:
        _said.add("warning")
        advice = f"if this comes again delete {path.parent}, or set NUMBA_CACHE_DIR to a folder that can be written"
        warn(RuntimeWarning(f"compiled code {what} ({error}); {advice}"))


def _forget_old(home: Path) -> None:
    with suppress(OSError):  # another process is at it too
        for folder in sorted(home.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(folder)
