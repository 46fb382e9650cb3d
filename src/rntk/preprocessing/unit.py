"""Sequences of Euclidean norm 1, as in the experiments of the RNTK paper."""

from __future__ import annotations

import numpy as np

from rntk.preprocessing.base import SequenceTransformer
from rntk.preprocessing.runs import quietly, scale_runs
from rntk.sequences import SequenceBatch

__all__ = ["UnitNorm", "unit_norm"]


@quietly
def unit_norm(batch: SequenceBatch) -> SequenceBatch:
    """Return each sequence divided by its Euclidean norm over all steps and channels.

    A sequence of zeros stays what it is. The result never overflows.

    Examples
    --------
    >>> from rntk.sequences import as_batch
    >>> unit_norm(as_batch([[3.0, 4.0], [0.0]])).values.ravel()
    array([0.6, 0.8, 0. ])
    """
    # One norm for all channels: read the m channels of a step as m steps of one channel.
    runs = scale_runs(batch.values.reshape(-1, 1), batch.offsets * batch.n_channels)
    norms = np.sqrt(runs.sums(runs.values * runs.values))
    norms[norms == 0] = 1
    unit = runs.values / runs.spread(norms)
    return SequenceBatch._from_checked(unit.reshape(batch.values.shape).astype(batch.dtype, copy=False), batch.offsets)


class UnitNorm(SequenceTransformer):
    """Divide each sequence by its Euclidean norm over all steps and channels: x / ‖x‖.

    The preprocessing of the RNTK paper. A sequence of zeros stays what it is.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.

    References
    ----------
    S. Alemohammad, Z. Wang, R. Balestriero and R. Baraniuk, "The Recurrent Neural Tangent Kernel", ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> UnitNorm().fit_transform(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    def _apply(self, batch: SequenceBatch) -> SequenceBatch:
        return unit_norm(batch)
