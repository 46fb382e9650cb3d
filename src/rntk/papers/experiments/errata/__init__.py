"""What the papers print differently from docs/theory.md, section 10, judged one by one.

Each erratum is a small example with three numbers: what the printed formula gives, what the corrected one gives (the
library's own value wherever it computes it), and what an independent judge finds: finite networks, random matrices,
quadrature, finite differences, plain gradient descent, or a count. The verdict is computed from the three.

`erratum` (the record and its verdict), `networks` (the judge of recurrent kernels), then the errata themselves:
`recurrent` and `tables` for the RNTK paper, `linear` for the paper on linear RNNs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .erratum import DRAWS, NEITHER, RIGHT, UNDECIDED, WRONG, Errata, Erratum, Trial
from .linear import LINEAR
from .recurrent import RECURRENT
from .tables import TABLES

__all__ = ["ERRATA", "NEITHER", "RIGHT", "UNDECIDED", "WRONG", "Errata", "Erratum", "Trial", "errata"]

#: Every erratum by a short name; each runs on its own, `ERRATA[name](np.random.default_rng(0))`.
ERRATA: dict[str, Trial] = RECURRENT | TABLES | LINEAR


def errata(draws: int = DRAWS, *, random_state: int = 0, only: str | Iterable[str] | None = None) -> Errata:
    """Judge the errata of both papers.

    Parameters
    ----------
    draws : networks, matrices or tables drawn for each erratum that has a random judge; some draw a multiple of it.
    random_state : seed. Every erratum has its own stream: which others run doesn't matter.
    only : names of errata to judge, all of `ERRATA` unless given.

    Raises
    ------
    ValueError : `draws` is less than two, or `only` names an erratum that doesn't exist.

    Examples
    --------
    >>> from rntk.papers.experiments.errata import errata
    >>> found = errata(only=["erf_value", "tap_bound"])
    >>> found.entries["erf_value"].verdict
    'printed formula is wrong'
    """
    names = list(ERRATA) if only is None else [only] if isinstance(only, str) else list(only)
    unknown = [name for name in names if name not in ERRATA]
    if unknown:
        raise ValueError(f"no erratum is called {', '.join(map(repr, unknown))}; there are {', '.join(ERRATA)}")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, or there is no standard error; not {draws!r}")
    found = {name: ERRATA[name](np.random.default_rng([random_state, *name.encode()]), draws) for name in names}
    return Errata(found, draws, random_state)
