"""The gate for what is to be learned: labels, values per sequence, values per step.

In: whatever users bring as `y`. Out: NumPy arrays with one entry or row per sequence or step, finite and complete.
Everything that learns reads its targets here, so that a mistake is named in the same words everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, column_or_1d

from ..errors import SequenceError, check_choice, say_value
from .batch import SequenceBatch
from .gate import as_batch

Array = NDArray[Any]
Task = Literal["classify", "regress"]

#: In scikit-learn's words, which its checks look for.
_NONE = "requires {0} to be passed, but the target {0} is None"


def read_labels(y: Any, count: int) -> Array:
    """Labels as a vector, one per sequence, of at least two classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any type.
    count : int
        Number of sequences.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If there are none, too few or too many, if some are missing, or if all are of one class.
    """
    if y is None:
        raise ValueError(_NONE.format("y"))
    if isinstance(y, (list, tuple)):
        _check_alike(y)  # NumPy makes words of all
    y = column_or_1d(_unmasked(y), warn=True)
    if len(y) != count:
        raise ValueError(
            f"{count} sequences and {len(y)} labels: there must be one label per sequence. Is X transposed? Its rows, "
            "or the items of its list, are the sequences"
        )
    if y.dtype.kind in "OSUT":
        missing = [i for i, label in enumerate(y.tolist()) if _is_missing(label)]
        if missing:
            named = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise ValueError(
                f"{len(missing)} of {count} labels are missing (None, NaN or empty), at positions {named}; "
                "leave those sequences out, or give their class a name"
            )
    assert_all_finite(y, input_name="y")
    try:
        check_classification_targets(y)
    except TypeError:
        _check_alike(y.tolist())
        raise
    if len(np.unique(y)) < 2:
        raise ValueError(f"the labels have only one class ({say_value(y[0])}); a classifier needs at least two")
    return np.asarray(y)


def _check_alike(labels: Any) -> None:
    """Refuse words among numbers."""
    words = [isinstance(label, (str, bytes)) for label in labels if not _is_missing(label)]
    if any(words) and not all(words):
        found = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(
            f"labels must be all words or all numbers, and these are of type {found}; "
            "y = [str(label) for label in y] makes words of all"
        )


def _unmasked(y: Any, name: str = "y") -> Any:
    """`y`, unless entries of it are masked: what is under a mask is nobody's label."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        masked = np.argwhere(np.broadcast_to(y.mask, np.shape(y)))
        raise ValueError(
            f"{name} is a masked array, and {len(masked)} of its entries are masked, the first at "
            f"position {masked[0][0]}; leave those sequences out: X[~mask], {name}[~mask]"
        )
    return y


def _is_missing(label: Any) -> bool:
    """None, NaN, pandas' NA, or nothing but spaces."""
    if isinstance(label, (str, bytes)):
        return not label.strip()
    return label is None or type(label).__name__ in ("NAType", "NaTType") or (np.ndim(label) == 0 and label != label)


def read_values(
    y: Any, count: int, *, unit: str = "sequence", name: str = "y", outputs: int | None = None
) -> NDArray[np.float64]:
    """Numbers to learn, one or several for each sequence or step.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, d)
        Finite numbers.
    count : int
        How many rows there must be.
    unit : str
        What a row belongs to: "sequence", or "step" where the steps of all sequences stand one after another.
    name : str
        What messages call the argument.
    outputs : int, optional
        How many numbers a row must have. The result has two axes then.

    Returns
    -------
    ndarray of shape (n,) or (n, d)
        float64.

    Raises
    ------
    ValueError
        Naming the shape that was expected, or the first row that isn't finite.

    Examples
    --------
    >>> read_values([1, 2], 2)
    array([1., 2.])
    >>> read_values([1, 2], 3)
    Traceback (most recent call last):
    ...
    ValueError: y has shape (2,), but there are 3 sequences: it must be (3,) or (3, d), one value or row \
per sequence. Is X transposed? Its rows are the sequences
    """
    if y is None:
        raise ValueError(_NONE.format(name))
    y = _unmasked(y, name)
    try:
        found = np.asarray(y)
        if found.dtype.kind not in "biufO":
            raise ValueError
        if found.dtype.kind == "O":  # pandas' NA is no float
            found = np.where(np.frompyfunc(_is_missing, 1, 1)(found).astype(bool), np.nan, found)
        found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, (n,) or (n, d), not {y!r:.80}") from None
    shape = found.shape
    if outputs is not None and found.ndim == 1:
        found = found.reshape(len(found), -1)
    if found.ndim not in (1, 2) or len(found) != count or found.size == 0:
        wanted = f"({count},) or ({count}, {outputs or 'd'})" if outputs in (None, 1) else f"({count}, {outputs})"
        order = ", the sequences one after another" if unit == "step" else ""
        transposed = ". Is X transposed? Its rows are the sequences" if unit == "sequence" and found.ndim == 1 else ""
        raise ValueError(
            f"{name} has shape {shape}, but there are {count} {unit}s: it must be {wanted}, one value or row per "
            f"{unit}{order}{transposed}"
        )
    if outputs is not None and found.shape[1] != outputs:
        raise ValueError(f"{name} has shape {shape}, but the outputs have ({count}, {outputs})")
    bad = np.flatnonzero(~np.isfinite(found).reshape(count, -1).all(axis=1))
    if bad.size:
        raise ValueError(f"{name} of {unit} {bad[0]} is not a finite number; drop or fill in what is missing")
    return found


def read_weights(sample_weight: Any, count: int) -> tuple[NDArray[np.int64], Array | None]:
    """Which of `count` sequences have a weight above zero, and those weights; None where all are alike.

    The others are as if they were not there.
    """
    if sample_weight is None:
        return np.arange(count), None
    weight = _check_sample_weight(_unmasked(sample_weight, "sample_weight"), np.empty(count), dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(f"weights of sequences must not be negative; the smallest is {weight.min():g}")
    if not weight.any():
        raise ValueError("all weights are zero, so there is no sequence to learn from")
    used = np.flatnonzero(weight)
    return used, weight[used]


def weigh_classes(class_weight: Any, labels: Array, weight: Array | None) -> Array | None:
    """Weights of sequences times those of their classes; None where all are alike."""
    if class_weight is None:
        return weight
    if class_weight != "balanced" and not isinstance(class_weight, Mapping):
        raise ValueError(
            f'class_weight must be "balanced", None, or a dict from labels to weights, not {say_value(class_weight)}'
        )
    own = compute_sample_weight(class_weight, labels)
    bad = np.flatnonzero(~(np.isfinite(own) & (own > 0)))
    if bad.size:
        raise ValueError(
            f"class_weight gives the class {say_value(labels[bad[0]])} the weight {own[bad[0]]:g}, which must be a "
            "positive number; to leave a class out, leave its sequences out"
        )
    return np.asarray(own if weight is None else own * weight)


def read_values_by_step(
    y: Any, batch: SequenceBatch, *, name: str = "y", outputs: int | None = None
) -> NDArray[np.float64]:
    """Numbers to learn at every step, in the layouts of sequences.

    Parameters
    ----------
    y : sequences, see `rntk.sequences.as_batch`
        As long as those of `batch`, with outputs for channels.
    batch : SequenceBatch
        The sequences.
    name : str
        What messages call the argument.
    outputs : int, optional
        How many numbers a step must have.

    Returns
    -------
    ndarray of shape (S, d)
        float64, one row per step of the batch.

    Raises
    ------
    SequenceError
        If `y` cannot be read, or differs from the sequences in number, length or outputs.

    Examples
    --------
    >>> read_values_by_step([[1.0, 2.0], [3.0]], as_batch([[5.0, 6.0], [7.0]])).ravel()
    array([1., 2., 3.])
    """
    if y is None:
        raise ValueError(_NONE.format(name))
    values = as_batch(y, name=name, layout="time-first").astype(np.float64)
    if len(values) != len(batch):
        raise SequenceError(f"{len(batch)} sequences and {len(values)} targets: there must be one per sequence")
    different = np.flatnonzero(values.lengths != batch.lengths)
    if different.size:
        i = int(different[0])
        raise SequenceError(
            f"{different.size} of {len(batch)} targets differ from their sequences in length: sequence {i} has "
            f"{batch.lengths[i]} steps, its target {values.lengths[i]}. There is one output per step"
        )
    if outputs is not None and values.n_channels != outputs:
        raise SequenceError(f"{name} has {values.n_channels} outputs, the model {outputs}")
    return np.asarray(values.values)


def read_task(y: Array, task: str = "auto", name: str = "the data") -> tuple[Task, Array]:
    """What labels are, classes or values, and the labels in the type that goes with it: the rule behind ``--task``.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels as a file has them: floats, integers or words.
    task : "auto", "classify" or "regress"
        With "auto", numbers with fractions are values, and so are numbers of which none occurs twice: no class could
        be learned from them. Other labels are classes.
    name : str
        What messages call the data.

    Returns
    -------
    task : "classify" or "regress"
    y : ndarray of shape (n,)
        Floats to regress on; integers or words as classes.

    Raises
    ------
    ValueError
        If words are to be regressed on, or numbers with fractions are to be classes.

    Examples
    --------
    >>> read_task(np.array([3, 1, 2]))
    ('regress', array([3., 1., 2.]))
    >>> read_task(np.array([1, 1, 2]))
    ('classify', array([1, 1, 2]))
    """
    check_choice("task", task, ("auto", "classify", "regress"))
    is_number, has_fractions = y.dtype.kind in "fiu", y.dtype.kind == "f"
    never_twice = len(y) > 1 and len(np.unique(y)) == len(y)
    if task == "regress" or (task == "auto" and is_number and (has_fractions or never_twice)):
        if not is_number:
            raise ValueError(f"the labels of {name} are words, such as {str(y[0])!r}; --task regress needs numbers")
        return "regress", y.astype(np.float64)
    if has_fractions:
        if not (y == np.floor(y)).all():
            raise ValueError(f"the labels of {name} are numbers with fractions, not classes; take --task regress")
        y = y.astype(np.int64) if np.abs(y).max() < 2**53 else y.astype(str)
    return "classify", y
