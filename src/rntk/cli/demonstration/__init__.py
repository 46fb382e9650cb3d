"""The demonstration behind `rntk demo`: two real data sets, two kernels, one picture.

In go data sets that ship with aeon; out come `Trial`s (what was chosen, how accurate, how long) and a PNG file. The
comparison is kept fair on purpose: both kernels get the same classifier, the same folds of the training set, the same
number of settings to choose from, and one look at the test set.
"""

from __future__ import annotations

from .compare import DataSet, Trial, classify_cut_series, load, try_rbf, try_rntk, warm_up
from .picture import draw

__all__ = ["DataSet", "Trial", "classify_cut_series", "draw", "load", "try_rbf", "try_rntk", "warm_up"]
