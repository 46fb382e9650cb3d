"""What saving has in common for all learners: the class, the constructor's parameters, and the shape of the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import NotFittedError

from ...kernels.pairwise import compares_vectors
from .arrays import Shelf
from .errors import DefectError, quote
from .fields import Fields
from .kernels import describe_kernel, restore_kernel
from .plain import encode

#: Parameters that hold a kernel, or None.
KERNELS = frozenset({"kernel", "start"})
#: Folders of the machine a model was fitted on. Not written: whoever loads the file has other folders, and a file
#: should not say where its reader writes.
LOCAL = frozenset({"cache"})


@dataclass(frozen=True)
class Learner:
    """How one class of learners is written down.

    Attributes
    ----------
    cls : the class; subclasses are not meant.
    proof : the attribute that `fit` sets last or nearly so.
    describe : the fitted part as JSON, arrays put on the shelf. restore : the inverse, on a learner just constructed.
    """

    cls: type
    proof: str
    describe: Callable[[Any, Shelf], dict[str, Any]]
    restore: Callable[[Any, Fields], None]

    @property
    def name(self) -> str:
        return self.cls.__name__

    def to_json(self, model: Any, shelf: Shelf) -> dict[str, Any]:
        """All of `model`."""
        if not hasattr(model, self.proof):
            raise NotFittedError(f"this {self.name} is not fitted, so there is nothing to save; call fit first")
        parameters = {
            name: describe_kernel(value) if name in KERNELS and value is not None else encode(value, name)
            for name, value in model.get_params(deep=False).items()
            if name not in LOCAL
        }
        fitted = {"n_channels_in_": model.n_channels_in_, **self.describe(model, shelf)}
        if hasattr(model, "n_features_in_"):
            fitted["n_features_in_"] = model.n_features_in_
        return {"class": self.name, "parameters": parameters, "fitted": fitted}

    def from_json(self, fields: Fields) -> Any:
        """The learner that `to_json` wrote down."""
        fields.text("class", (self.name,))
        given = fields.part("parameters")
        known = set(self.cls().get_params(deep=False)) - LOCAL
        for name in given.found:
            if name not in known:
                raise DefectError(f"{given.where} has {quote(name)}, a parameter that {self.name} does not have here")
        model = self.cls(
            **{
                name: restore_kernel(given.part(name)) if name in KERNELS and given.has(name) else given.value(name)
                for name in given.found
            }
        )
        fitted = fields.part("fitted")
        model.n_channels_in_ = fitted.integer("n_channels_in_", 1)
        if fitted.has("n_features_in_"):
            model.n_features_in_ = fitted.integer("n_features_in_", 1)
        self.restore(model, fitted)
        if any(map(compares_vectors, model._fitted_kernels())) and not hasattr(model, "n_features_in_"):
            raise DefectError(f"{fitted.where} lacks 'n_features_in_', the length that its kernel compares")
        return model
