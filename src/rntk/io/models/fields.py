"""The entries of a model's description, each asked for with the type, range or shape it must have."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array
from .errors import DefectError, quote
from .plain import decode

_MISSING = object()


@dataclass(frozen=True)
class Fields:
    """One JSON object of a model file.

    Attributes
    ----------
    found : the object. where : its place in the file, for messages. arrays : the arrays of the file by name.
    """

    found: dict[str, Any]
    where: str
    arrays: Mapping[str, Array]

    @classmethod
    def of(cls, found: object, where: str, arrays: Mapping[str, Array]) -> Fields:
        """`found`, if it is an object."""
        if not isinstance(found, dict):
            raise DefectError(f"{where} is {quote(found)}, expected an object")
        return cls(found, where if len(where) < 200 else f"… {where[-100:]}", arrays)

    def _get(self, name: str) -> Any:
        value = self.found.get(name, _MISSING)
        if value is _MISSING:
            raise DefectError(f"{self.where} lacks {name!r}")
        return value

    def _wrong(self, name: str, expected: str) -> DefectError:
        return DefectError(f"{self.where}: {name} is {quote(self.found[name])}, expected {expected}")

    def has(self, name: str) -> bool:
        """Whether there is such an entry, and it is not null."""
        return self.found.get(name) is not None

    def text(self, name: str, among: Collection[str] | None = None) -> str:
        """A string, one of `among` if that is given."""
        value = self._get(name)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self._wrong(name, "a text" if among is None else f"one of {', '.join(among)}")
        return value

    def integer(self, name: str, least: int, most: int = 2**31 - 1) -> int:
        """A whole number between both bounds."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"a whole number from {least} to {most}")
        return value

    def number(self, name: str, least: float = -math.inf) -> float:
        """A finite number, at least `least`."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise self._wrong(name, "a finite number" if least == -math.inf else f"a finite number from {least:g}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(name, "a finite number")
        return number

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def value(self, name: str) -> Any:
        """Whatever parameter value the entry describes."""
        return decode(self._get(name), f"{self.where}: {name}")

    def part(self, name: str) -> Fields:
        """An object inside."""
        return Fields.of(self._get(name), f"{self.where}: {name}", self.arrays)

    def parts(self, name: str) -> list[Fields]:
        """A list of objects inside, not an empty one."""
        value = self._get(name)
        if not isinstance(value, list) or not value:
            raise self._wrong(name, "a list with entries")
        return [Fields.of(each, f"{self.where}: {name} {i}", self.arrays) for i, each in enumerate(value)]

    def array(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64, *, finite: bool = True) -> Array:
        """The array of this name, of the type and shape it must have; None is any size."""
        key = self._get(name)
        if not isinstance(key, str) or key not in self.arrays:
            raise self._wrong(name, "the name of an array in the file")
        array = self.arrays[key]
        fits = array.ndim == len(shape) and all(
            want in (None, size) for want, size in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise DefectError(
                f"{self.where}: {name} is {array.dtype} of shape {array.shape}, expected {np.dtype(dtype)} of "
                f"shape ({wanted})"
            )
        if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise DefectError(f"{self.where}: {name} holds numbers that are not finite")
        return array
