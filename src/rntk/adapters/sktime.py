"""Any kernel of rntk as sktime's pairwise transformer of panels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import need_extra
from ..kernels import NTK, RNTK
from ..kernels.pairwise import of
from ..learners.base import as_kernel
from ..sequences import as_batch

__all__ = ["RNTKPairwise"]

BasePairwiseTransformerPanel: Any = need_extra("sktime", "sktime.dists_kernels.base").BasePairwiseTransformerPanel
Array = NDArray[Any]


class RNTKPairwise(BasePairwiseTransformerPanel):  # type: ignore[misc]
    """Gram matrix of a kernel between two panels, for every place where sktime takes a kernel.

    Parameters
    ----------
    kernel : None, kernel or function, default=None
        `RNTK()`, a kernel of rntk or scikit-learn, or a function (X, Y) -> Gram matrix.

    Notes
    -----
    `transform(X)`, and `transform(X, X)` of one object, is `kernel(X)`, whose diagonal holds the same-sequence term of
    `sigma_h`. Any other `transform(X, X2)` is `kernel(X, X2)`, which does not, even where X2 is a copy of X; among
    them is what sktime's pipelines of transformers pass on, who transform X twice.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.adapters.sktime import RNTKPairwise
    >>> X = np.array([[[1.0, -1.0, 1.0]], [[0.5, 0.5, 0.0]]])  # sktime's layout: instances, channels, time
    >>> RNTKPairwise()(X).round(4)
    array([[4.5  , 0.447],
           [0.447, 0.875]])
    """

    _tags = {  # noqa: RUF012  (sktime collects it from the classes)
        "authors": "The rntk developers",
        "maintainers": "The rntk developers",
        "X_inner_mtype": "df-list",  # the one of sktime's types that holds unequal lengths, time first as in rntk
        "pwtrafo_type": "kernel",
        "symmetric": True,
        "capability:missing_values": False,
        "capability:multivariate": True,
        "capability:unequal_length": True,
    }

    def __init__(self, kernel: Any = None) -> None:
        self.kernel = kernel
        super().__init__()

    def transform(self, X: Any, X2: Any = None) -> Array:
        """(n, m) values of the kernel between the sequences of the panels `X` and `X2`, which is `X` if not passed."""
        # The base class says 'no X2' by passing X twice, but converts a given X2 first: to a copy, for most types.
        return np.asarray(super().transform(X, None if X2 is X else X2))

    def _transform(self, X: Any, X2: Any = None) -> Array:
        right = None if X2 is None or X2 is X else as_batch(X2, name="X2")
        return np.asarray(of(as_kernel(self.kernel)).gram(as_batch(X), right), dtype=np.float64)

    def transform_diag(self, X: Any) -> Array:
        """(n,) values of the kernel of every sequence with itself, the diagonal of `transform(X)`."""
        batch, kernel = as_batch(self._pairwise_panel_x_check(X)), of(as_kernel(self.kernel))
        kernel.plan(batch)
        return np.asarray(kernel.diagonal(kernel.prepare(batch)), dtype=np.float64)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for sktime's checks: the default, one with every part of a recurrent kernel, and one of vectors."""
        everything = RNTK("erf", sigma_b=0.1, sigma_h=0.2, depth=2, readout="mean", normalize=True)
        return [{}, {"kernel": everything}, {"kernel": NTK(depth=2)}]
