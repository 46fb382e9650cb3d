"""Trained networks to compare with: the three of the RNTK paper's Table 1, as scikit-learn classifiers (JAX, optax).

In go sequences and labels as everywhere in rntk, ragged and with several channels; out come labels and probabilities.
`paper_grid` is the grid of the paper's appendix A, for scikit-learn's `GridSearchCV`.

| class | network |
|---|---|
| `GaussianRNNClassifier` | ReLU network with Gaussian weights in the NTK parameterisation: the RNTK at finite width |
| `IdentityRNNClassifier` | ReLU network whose recurrent weights start as the identity |
| `GRUClassifier` | gated recurrent units |

The path: `padding` (ragged sequences as the few array shapes that are worth compiling for) → `elman`, `gru` (one
recurrence each, with its own backward pass) → `networks` (what is drawn, and the logits) → `rmsprop` (one step of
training) → `training` (epochs, and when to stop) → `classifier` (what users hold). `holdout` chooses the sequences that
decide when to stop, `grid` is the paper's.
"""

# ruff: noqa: E402  optax is asked for before anything that loads it
from __future__ import annotations

from ...errors import need_extra

need_extra("finite", "optax")

from .classifier import GaussianRNNClassifier, GRUClassifier, IdentityRNNClassifier
from .grid import paper_grid

__all__ = ["GRUClassifier", "GaussianRNNClassifier", "IdentityRNNClassifier", "paper_grid"]
