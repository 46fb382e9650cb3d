"""What can be wrong: the exceptions of rntk, how several problems become one message, and the checks of arguments.

Every exception a caller may want to catch by name is defined here, so that the rest of the package imports error types
from one place and this module imports nothing of the package. User mistakes derive from ``ValueError``; numerical
failures get types of their own. What a program may want to know of an error is in its attributes, never only in its
text.
"""

from __future__ import annotations

import errno
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

# -- data and files ----------------------------------------------------------------------------------------------------


class SequenceError(ValueError):
    """Data handed over as sequences cannot be used; the message lists every problem and what to try.

    Raised where data enters the package (`rntk.sequences`) and nowhere later: code that holds a
    `SequenceBatch` may rely on its invariants. It is a ``ValueError``, so callers that know nothing of rntk,
    scikit-learn among them, treat it as the bad input it reports.

    Parameters
    ----------
    message : str
        The full text, ready to be read.
    problems : iterable of str, optional
        The problem lines of the message one by one, for programs that want to show them in their own way.
    subject : str, optional
        What the message calls the data, an argument or a file. The message starts with it.

    Attributes
    ----------
    problems : tuple of str
        As given. A long list is cut in the same place as in the message.
    subject : str
        As given.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> try:
    ...     as_batch([[1.0, 2.0], []])
    ... except SequenceError as error:
    ...     error.problems
    ('sequence 1 is empty (shape (0,)); every sequence needs at least one step',)
    """

    problems: tuple[str, ...]

    def __init__(self, message: str, problems: Iterable[str] = (), subject: str = "") -> None:
        # Only the message goes into `args`: pickle rebuilds from `args` and then restores the attributes.
        super().__init__(message)
        self.problems = tuple(problems)
        self.subject = subject

    def known_as(self, subject: str) -> Self:
        """The same error about data that the caller knows by another name."""
        return type(self)(subject + str(self).removeprefix(self.subject), self.problems, subject)


class DataFileError(SequenceError):
    """A data file cannot be read; the message names the file, the lines, what was expected and what to do.

    It is a `SequenceError`, so whoever guards against unusable data guards against unusable files, and with it a
    ``ValueError``. The attribute `problems` holds the problem lines one by one, `subject` the path of the file.

    Examples
    --------
    >>> from rntk.io import read
    >>> try:
    ...     read("nowhere/GunPoint_TRAIN.tsv")
    ... except DataFileError as error:
    ...     print(error)
    nowhere/GunPoint_TRAIN.tsv cannot be read: there is no such file, nor the folder nowhere; check the path
    """


class ModelFileError(ValueError):
    """A model cannot be saved or loaded; the message names the file, what is wrong and what to do.

    Examples
    --------
    >>> from rntk.io import load
    >>> try:
    ...     load("nowhere/model.rntk")
    ... except ModelFileError as error:
    ...     print(error)
    nowhere/model.rntk cannot be loaded: there is no such file
    """


class BusyError(RuntimeError):
    """Another process holds what this one was to write to.

    Parameters
    ----------
    path : Any
        What is held.

    Attributes
    ----------
    path : Any
        As given.
    """

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"another run writes to {self.path}; wait for it, or give another name"


class ProblemReport:
    """Every problem of one argument, gathered first and raised once.

    Problems are filed under a kind. The message shows at most `LINE_LIMIT` lines: the first of every kind, so
    that no kind of problem hides behind another, then the earliest ones; what is left out is counted by kind.
    Memory stays bounded however many problems come in.

    Parameters
    ----------
    name : str
        The argument the problems belong to, as the caller knows it.

    Examples
    --------
    >>> report = ProblemReport("X")
    >>> report.add("empty", "sequence 4 is empty", position=4, advice="drop it")
    >>> print(report.error())
    X cannot be used as sequences (1 problem):
      - sequence 4 is empty
    What to try:
      - drop it
    """

    LINE_LIMIT = 10

    def __init__(self, name: str) -> None:
        self.name = name
        self._lines: dict[str, list[tuple[int, str]]] = {}
        self._counts: dict[str, int] = {}
        self._advice: dict[str, None] = {}  # a dict, for its order and its uniqueness

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self._counts)

    def add(self, kind: str, text: str, *, position: int = -1, advice: str | None = None) -> None:
        """File one problem.

        Parameters
        ----------
        kind : str
            Short name of the kind, used to count what the message leaves out.
        text : str
            The line to show.
        position : int, optional
            Where the line sorts: the sequence index, or -1 for a problem of the whole argument. Problems of
            one kind arrive in ascending position.
        advice : str, optional
            What to try. The same advice given twice is shown once.
        """
        lines = self._lines.setdefault(kind, [])
        if len(lines) < self.LINE_LIMIT:
            lines.append((position, text))
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if advice is not None:
            self.advise(advice)

    def count_further(self, kind: str, count: int) -> None:
        """Count problems of a kind beyond the lines already filed, without spelling them out."""
        if count > 0:
            self._counts[kind] = self._counts.get(kind, 0) + count

    def advise(self, advice: str) -> None:
        """Add a line to what the message suggests."""
        self._advice[advice] = None

    def error(self, error_type: type[SequenceError] = SequenceError) -> SequenceError:
        """Return the one exception, of this type, that tells everything filed so far."""
        assert self, "an error was asked for, but no problem was reported"
        shown = self._choose_lines()
        total = sum(self._counts.values())
        message = [f"{self.name} cannot be used as sequences ({total} problem{'s' if total != 1 else ''}):"]
        message += [f"  - {text}" for _, _, text in shown]
        if total > len(shown):
            left = dict(self._counts)
            for _, kind, _ in shown:
                left[kind] -= 1
            parts = ", ".join(f"{count} {kind}" for kind, count in left.items() if count)
            message.append(f"  ... and {total - len(shown)} more ({parts})")
        if self._advice:
            message.append("What to try:")
            message += [f"  - {advice}" for advice in self._advice]
        return error_type("\n".join(message), [text for _, _, text in shown], self.name)

    def _choose_lines(self) -> list[tuple[int, str, str]]:
        """Pick (position, kind, text) of the lines to show, in order of position."""
        firsts, others = [], []
        for kind, lines in self._lines.items():
            entries = [(position, kind, text) for position, text in lines]
            firsts += entries[:1]
            others += entries[1:]
        others.sort(key=lambda entry: entry[0])
        return sorted((firsts + others)[: self.LINE_LIMIT], key=lambda entry: entry[0])


# -- numbers -----------------------------------------------------------------------------------------------------------


class KernelOverflowError(ArithmeticError):
    """A kernel value is too large for its floating-point type.

    Parameters
    ----------
    message : str
        The text. Where it says ``{sequence}``, the sequence is named from the attributes: "sequence 3 of X".
    sequence : int, optional
        Index of the sequence to blame.
    side : str, optional
        The argument it belongs to, where there are two.

    Attributes
    ----------
    sequence : int
        Index of the sequence whose variance is to blame, -1 if unknown.
    side : str
        "X" or "Y", or empty where one argument was given or it is unknown.

    Examples
    --------
    >>> error = KernelOverflowError("the variance of {sequence} overflows", sequence=3, side="X")
    >>> print(error)
    the variance of sequence 3 of X overflows
    >>> print(error.known_as(43))
    the variance of sequence 43 overflows
    """

    def __init__(self, message: str, sequence: int = -1, side: str = "") -> None:
        super().__init__(message)  # pickle rebuilds from it and then restores the attributes
        self.sequence = sequence
        self.side = side

    def __str__(self) -> str:
        named = f"sequence {self.sequence}" + (f" of {self.side}" if self.side else "")
        return str(self.args[0]).replace("{sequence}", named)

    def known_as(self, sequence: int, side: str = "") -> KernelOverflowError:
        """The same error of a sequence that the caller knows by another index, in a larger batch for instance."""
        return KernelOverflowError(self.args[0], sequence, side)


class DivergenceError(ArithmeticError):
    """Gradient descent runs away.

    Parameters
    ----------
    message : str
        The text.
    step : int, optional
        The step at which it was noticed.

    Attributes
    ----------
    step : int
        As given; -1 if unknown.
    """

    def __init__(self, message: str, step: int = -1) -> None:
        super().__init__(message)
        self.step = step


class ActivationError(ValueError):
    """A function that can't be an activation, since it isn't finite or its derivative isn't square-integrable; or an
    expansion that says nothing about the kernel at these variances."""


class HermiteAccuracyWarning(UserWarning):
    """The Hermite expansion of an activation did not reach the accuracy asked for; the message says how far it got.

    Parameters
    ----------
    message : str
        The text.
    error : float, optional
        The error that is left.

    Attributes
    ----------
    error : float
        Of one step through the activation, or of a kernel of the reference engine, relative to the largest value.
    """

    def __init__(self, message: str, error: float = float("nan")) -> None:
        super().__init__(message)
        self.error = error


def warn(warning: Warning) -> None:
    """Show a warning at the line that called into rntk, from however deep inside."""
    frame, level, outside = sys._getframe(1), 2, 2
    while frame is not None:
        level += 1
        if frame.f_globals.get("__name__", "").partition(".")[0] == "rntk":
            outside = level
        frame = frame.f_back  # type: ignore[assignment]
    warnings.warn(warning, stacklevel=outside)


# -- Gram matrices on disk and on clusters -----------------------------------------------------------------------------


class GramStoreError(ValueError):
    """A store can't be used as asked: it is none, belongs to other data or another kernel, or lacks a tile."""


class DamagedTileError(GramStoreError):
    """Tiles on disk aren't what was written.

    Parameters
    ----------
    path : Any
        The store.
    tiles : sequence of (int, int)
        The damaged ones, (i, j).

    Attributes
    ----------
    tiles : tuple of (int, int)
        As given.
    """

    def __init__(self, path: Any, tiles: Sequence[tuple[int, int]]) -> None:
        super().__init__(path, tuple(tiles))
        self.tiles = tuple(tiles)

    def __str__(self) -> str:
        return (
            f"{name_tiles(self.tiles)} of {self.args[0]} changed after being written: the checksum differs. "
            "The rntk.gram.compute call that made the store computes damaged tiles anew"
        )


class ClusterError(RuntimeError):
    """A Dask cluster can't be reached, has no workers left, or its workers die on a tile; finished tiles are kept."""


class StoreFullError(OSError):
    """No room for the next tile; those before it are kept.

    Parameters
    ----------
    path : Any
        The store.
    done, total : int
        Tiles that are complete, and all of them.
    needed, free : int
        Bytes that the others need, and that are free.
    """

    def __init__(self, path: Any, done: int, total: int, needed: int, free: int) -> None:
        message = (
            f"no room for {path}: {done} of {total} tiles are complete, the others need {say_bytes(needed)}, and "
            f"{say_bytes(free)} are free. Make room, and the same call goes on from there"
        )
        super().__init__(errno.ENOSPC, message)
        self._arguments = (path, done, total, needed, free)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreFullError, self._arguments

    def __str__(self) -> str:
        return str(self.strerror)


def name_tiles(tiles: Sequence[tuple[int, int]], limit: int = 5) -> str:
    """Tiles in a message: all of them, or the first few and how many more."""
    named = ", ".join(f"({i}, {j})" for i, j in tiles[:limit])
    more = f" and {len(tiles) - limit} more" if len(tiles) > limit else ""
    return f"tile{'s' if len(tiles) > 1 else ''} {named}{more}"


# -- optional parts ----------------------------------------------------------------------------------------------------


class MissingExtraError(ModuleNotFoundError):
    """A package that an optional part of rntk needs can't be imported.

    Parameters
    ----------
    extra : str
        The extra that brings it: ``pip install "rntk[extra]"``.
    package : str
        What can't be imported.
    reason : str
        What Python says about it.

    Attributes
    ----------
    extra : str
        As given.
    name : str
        The package.
    """

    def __init__(self, extra: str, package: str, reason: str) -> None:
        super().__init__(f'{package} can\'t be imported ({reason}): pip install "rntk[{extra}]"', name=package)
        self.extra = extra
        self._arguments = (extra, package, reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingExtraError, self._arguments


def need_extra(extra: str, *modules: str) -> Any:
    """Import modules of an optional dependency, and return the last.

    Parameters
    ----------
    extra : str
        The extra of rntk that brings them.
    *modules : str
        Their names.

    Raises
    ------
    MissingExtraError
        Naming the package that is missing, which may be one that a module needs itself, and the extra to install.

    Examples
    --------
    >>> need_extra("plot", "no_such_package.axes")
    Traceback (most recent call last):
    ...
    rntk.errors.MissingExtraError: no_such_package can't be imported (No module named 'no_such_package'): pip install \
"rntk[plot]"
    """
    found = None
    for module in modules:
        try:
            found = import_module(module)
        except ImportError as error:
            raise MissingExtraError(extra, (error.name or module).partition(".")[0], str(error)) from error
    return found


# -- arguments ---------------------------------------------------------------------------------------------------------


def say_value(value: Any) -> str:
    """A value in a message, without the type of NumPy's scalars: 0.0, not np.float64(0.0)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """`value` as an integer of at least `least`, and at most `most`, or a ValueError."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if isinstance(value, (bool, np.bool_)) or count < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {say_value(value)}")
    if most is not None and count > most:
        raise ValueError(f"{name} must be at most {most}, not {say_value(value)}")
    return count


def check_positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """`value` as a finite number above zero, or a ValueError; with `or_zero` it may be zero."""
    try:
        number = float("nan") if isinstance(value, (bool, np.bool_, str, bytes)) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number < float("inf") or (number == 0 and not or_zero):
        raise ValueError(f"{name} must be a {'non-negative' if or_zero else 'positive'} number, not {say_value(value)}")
    return number


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """`value` if it is one of `choices`, or a ValueError that lists them."""
    if not isinstance(value, str) or value not in choices:
        quoted = [f'"{each}"' for each in choices]
        raise ValueError(f"{name} must be {', '.join(quoted[:-1])} or {quoted[-1]}, not {say_value(value)}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """`value` if it is True or False, or a ValueError."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {say_value(value)}")
    return bool(value)


def check_path(name: str, value: Any) -> Path:
    """`value` as a path at which something may be, or a TypeError or ValueError."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, not {type(value).__name__}")
    path = os.fsdecode(value)
    try:
        if not path:
            raise ValueError("it is empty")
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}={path[:60]!r} is no usable path: {getattr(error, 'strerror', error)}") from None
    return Path(path)


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """`dtype` as that of float32 or float64, or a ValueError."""
    try:
        resolved: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        resolved = np.dtype(object)
    if resolved not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
    return resolved


def say_bytes(count: float) -> str:
    """A number of bytes as people say it: 1.6 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
