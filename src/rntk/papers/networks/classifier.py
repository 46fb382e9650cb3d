"""The classifiers: scikit-learn's contract around `training`."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ...errors import DivergenceError, check_count
from ...kernels.pairwise import read_sequences
from ...preprocessing import ChannelScaler
from ...sequences import SequenceBatch, check_channels
from ...sequences.targets import read_labels
from .holdout import hold_out
from .networks import GatedUnits, GaussianElman, IdentityElman, Recurrent
from .training import Labelled, evaluate, train

Array = NDArray[Any]


class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers; subclasses say which network."""

    _network: ClassVar[Recurrent]

    def __init__(
        self,
        width: int = 100,
        depth: int = 1,
        learning_rate: float = 1e-3,
        max_epochs: int = 200,
        batch_size: int = 32,
        patience: int = 5,
        min_steps: int = 500,
        validation_fraction: float | None = 0.2,
        clip_norm: float | None = 1.0,
        standardize: bool = True,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.width = width
        self.depth = depth
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.min_steps = min_steps
        self.validation_fraction = validation_fraction
        self.clip_norm = clip_norm
        self.standardize = standardize
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Train on sequences `X` and labels `y`, one per sequence.

        Raises
        ------
        ValueError
            If a parameter, the sequences or the labels can't be used.
        DivergenceError
            If the network overflows in every epoch. `GridSearchCV` gives such a setting NaN, and doesn't choose it.
        """
        self._check_parameters()
        batch = read_sequences(X)
        y = read_labels(y, len(batch))
        random = check_random_state(self.random_state)
        self.n_channels_in_ = batch.n_channels
        self.longest_ = batch.max_length
        self.scaler_ = ChannelScaler().fit(batch) if self.standardize else None
        self.classes_, labels = np.unique(y, return_inverse=True)
        sequences = self._prepare(batch)
        training, watched = self._divide(sequences, labels, random)
        parameters = self._network.draw(batch.n_channels, self.width, self.depth, len(self.classes_), random)
        trained = train(self._network, parameters, training, watched, self, random)
        self.parameters_ = trained.parameters
        self.history_ = trained.history
        self.best_epoch_ = trained.best_epoch
        self.n_iter_ = len(trained.history["loss"])
        return self

    def decision_function(self, X: Any) -> Array:
        """Logits (n, classes); for two classes (n,), the second minus the first.

        Raises
        ------
        DivergenceError
            If the network's state overflows on a sequence, as may happen on ones much longer than those of `fit`.
        """
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, classes), in the order of `classes_`: the softmax of the logits."""
        return np.asarray(softmax(self._logits(X), axis=1))

    def predict(self, X: Any) -> Array:
        """Labels of the sequences in `X`."""
        best = self._logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _logits(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        batch = read_sequences(X)
        check_channels(batch, self.n_channels_in_, self)
        logits = evaluate(self._network, self.parameters_, self._prepare(batch), self.batch_size, self.longest_)
        overflows = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        if len(overflows):
            i = int(overflows[0])
            raise DivergenceError(
                f"the network's state overflows single precision on {len(overflows)} of {len(batch)} sequences, first "
                f"on sequence {i} of {batch.lengths[i]} steps; the longest in fit had {self.longest_}"
            )
        return logits.astype(np.float64)

    def _prepare(self, batch: SequenceBatch) -> SequenceBatch:
        """What the network reads: channels scaled as in fit, single precision."""
        scaled = batch if self.scaler_ is None else self.scaler_.transform(batch)
        return scaled.astype(np.float32)

    def _divide(
        self, sequences: SequenceBatch, labels: NDArray[np.intp], random: np.random.RandomState
    ) -> tuple[Labelled, Labelled | None]:
        everything = Labelled(sequences, labels)
        self.validation_ = np.empty(0, dtype=np.intp)
        if self.validation_fraction is None:
            return everything, None
        rows, self.validation_ = hold_out(labels, self.validation_fraction, random)
        if not len(self.validation_):
            return everything, everything
        return Labelled(sequences.take(rows), labels[rows]), Labelled(
            sequences.take(self.validation_), labels[self.validation_]
        )

    def _check_parameters(self) -> None:
        for name in ("width", "depth", "max_epochs", "batch_size", "patience"):
            check_count(name, getattr(self, name))
        check_count("min_steps", self.min_steps, 0)
        for name, optional in (("learning_rate", False), ("clip_norm", True), ("validation_fraction", True)):
            value = getattr(self, name)
            top = 1 if name == "validation_fraction" else np.inf
            if value is None and optional:
                continue
            if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 < float(value) < top:
                raise ValueError(
                    f"{name} must be a number between 0 and {top}{', or None' if optional else ''}, not {value!r}"
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


class GRUClassifier(NetworkClassifier):
    r"""Gated recurrent units, trained as in appendix A of the RNTK paper.

    Layers of GRUs (Cho et al. 2014, with the reset gate where PyTorch has it, see `gru`), everything drawn uniformly
    between ±1/√n; a linear readout of the last state; cross-entropy; RMSProp on mini-batches. Training stops when the
    accuracy on sequences set aside has not risen for `patience` epochs, and the best epoch's parameters are kept.

    Parameters
    ----------
    width
        Units n per layer.
    depth
        Layers L.
    learning_rate
        η of RMSProp, whose mean square decays by 0.9 per step.
    max_epochs
        When to stop at the latest.
    batch_size
        Sequences per step of training. Prediction takes as many at a time.
    patience
        Epochs without a higher accuracy after which training stops.
    min_steps
        Steps of training before `patience` begins to count. Zero is what the appendix says; but on small data sets five
        epochs are a handful of steps, and networks would be stopped while they still name one class for everything. On
        large ones the first epochs pass it.
    validation_fraction
        Share of each class that is set aside for stopping. A class of one sequence is trained on and not validated; if
        all are so, the training sequences themselves are watched. None sets nothing aside, and training goes through
        all epochs.
    clip_norm
        Longest gradient, over all parameters together. The appendix doesn't mention clipping, Le et al. (2015) clip. It
        is on because one exploding gradient, common in ReLU networks over hundreds of steps, would fill RMSProp's mean
        square and stop learning for a while. None leaves gradients as they are.
    standardize
        Bring each channel to mean 0 and deviation 1 over the training sequences. The paper doesn't say what its
        networks read. The initial weights expect inputs of about this size; unit norm, which the paper has for kernels,
        makes single steps so small that training hardly starts.
    random_state
        Seed of the initial parameters, of what is set aside, and of the order of the batches. The same number gives the
        same result, on one machine.
    progress
        Show a bar: None on a terminal once it takes long, True, or False.

    Attributes
    ----------
    classes_
        The labels.
    parameters_
        The best epoch's parameters, NumPy arrays in a tuple.
    history_
        For each epoch "loss" (mean over the training batches), "validation_accuracy", "validation_loss", and "skipped",
        the steps left out because their gradient was not finite.
    best_epoch_
        The epoch whose parameters were kept, from 0: the highest accuracy, then the lowest loss.
    n_iter_
        Epochs trained.
    validation_
        Which sequences were set aside.
    scaler_
        The `ChannelScaler`, or None.
    n_channels_in_, longest_
        Channels, and steps of the longest sequence, in `fit`.

    Notes
    -----
    Computation is in single precision. Ragged batches are padded in front; outputs and gradients don't depend on the
    padding. Each shape, of which there are few, is compiled once per process and width, whatever the learning rate.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers.networks import GRUClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [np.sin(np.arange(n) * w + rng.uniform(0, 6)) for n in [17, 20] * 20 for w in (0.3, 0.9)]
    >>> y = ["slow", "fast"] * 40
    >>> model = GRUClassifier(width=8, learning_rate=0.03, random_state=0).fit(X, y)
    >>> model.predict([np.sin(np.arange(20) * 0.9)])
    array(['fast'], dtype='<U4')
    """

    _network = GatedUnits()


class GaussianRNNClassifier(NetworkClassifier):
    r"""ReLU network with Gaussian weights, trained as in appendix A of the RNTK paper.

    Equations (1) to (3) of docs/theory.md at finite width: standard normal numbers are trained, with
    σ_w = σ_v = √2, σ_u = 1 and no biases in front of them. `RNTK(sigma_v=2**0.5)` is the limit of its tangent kernel.
    Parameters, attributes and notes are those of `GRUClassifier`. States of a ReLU network may grow without bound;
    `DivergenceError` tells when they pass what single precision holds.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers.networks import GaussianRNNClassifier
    >>> X = np.random.default_rng(0).standard_normal((40, 10))
    >>> y = (X.mean(axis=1) > 0).astype(int)
    >>> model = GaussianRNNClassifier(width=8, learning_rate=0.01, random_state=0).fit(X, y)
    >>> model.predict([-np.ones(10), np.ones(10)])
    array([0, 1])
    """

    _network = GaussianElman()


class IdentityRNNClassifier(NetworkClassifier):
    r"""ReLU network that starts by remembering everything, trained as in appendix A of the RNTK paper.

    Recurrent weights start as the identity, other weights with deviation 0.001, biases at zero (Le, Jaitly and Hinton
    2015, arXiv:1504.00941): at first the state is a sum over time. Parameters, attributes and notes are those of
    `GRUClassifier`; what `GaussianRNNClassifier` says of overflow holds here too.

    Examples
    --------
    >>> import numpy as np
    >>> from rntk.papers.networks import IdentityRNNClassifier
    >>> X = np.random.default_rng(0).standard_normal((40, 10))
    >>> y = (X.mean(axis=1) > 0).astype(int)
    >>> model = IdentityRNNClassifier(width=8, learning_rate=0.01, random_state=0).fit(X, y)
    >>> model.predict([-np.ones(10), np.ones(10)])
    array([0, 1])
    """

    _network = IdentityElman()
