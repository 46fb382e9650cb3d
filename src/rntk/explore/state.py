"""From settings to everything the page shows: sensitivity, Gram matrix, leave-one-out score, or what is wrong.

No Bokeh here: `look` takes a subject and settings and gives a `Picture` or a `Trouble`, never an exception for a
setting that a slider or a number box can take. What is computed is the kernel itself; what is drawn is normalised.
"""

from __future__ import annotations

import base64
import time
import warnings
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import HermiteAccuracyWarning, KernelOverflowError, SequenceError
from ..io import read
from ..learners.ensemble.leave_one_out import ridge_path
from ..theory import Sensitivity, sensitivity, suggest
from .budget import Budget, plan
from .data import Group, Part, Subject
from .settings import Settings

Array = NDArray[np.float64]

#: Ridges that are tried, as multiples of the mean of the diagonal: none is below what rounding leaves of eigenvalues.
RELATIVE_RIDGES = {"float32": np.logspace(-5, 1, 13), "float64": np.logspace(-10, 1, 23)}
#: What the arithmetic of an extreme setting can end in.
NUMERICAL = (KernelOverflowError, ValueError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True, eq=False)
class Curve:
    """Sensitivity by step, each pair's curve divided by its largest value.

    Attributes
    ----------
    at : ndarray of shape (T,)
        Numbers of steps from 1, or minus the distance from the last one if lengths differ; middles of blocks.
    from_end : bool
        Whether they are distances.
    mean : ndarray of shape (T,)
        Over pairs.
    low, high : ndarrays of shape (T,)
        Two standard errors on either side.
    flatness : float
        Deviation over time relative to the mean; 0 is flat.
    n_pairs : int
        How many pairs.
    """

    at: Array
    from_end: bool
    mean: Array
    low: Array
    high: Array
    flatness: float
    n_pairs: int


@dataclass(frozen=True, eq=False)
class Score:
    """Leave-one-out of kernel ridge regression, closed form, for every ridge.

    Attributes
    ----------
    measure : "accuracy" or "R²"
        What the values are.
    ridges : ndarray of shape (R,)
        Relative to the mean of the diagonal.
    values : ndarray of shape (R,)
        The score for each.
    best : int
        Index of the best ridge; of equals the largest.
    baseline : float
        What one gets without looking at the sequences.
    """

    measure: str
    ridges: Array
    values: Array
    best: int
    baseline: float

    @property
    def value(self) -> float:
        """The best score."""
        return float(self.values[self.best])


@dataclass(frozen=True, eq=False)
class Picture:
    """Everything the page shows of one setting.

    Attributes
    ----------
    settings : Settings
        Of the kernel.
    curve : Curve
        Its sensitivity.
    similarity : ndarray of shape (n, n)
        The Gram matrix with its diagonal scaled to one, rows sorted by label into `groups`.
    groups : tuple of Group
        The classes.
    score : Score or None
        None where there is nothing to predict; `no_score` says why.
    no_score : str
        Why there is none.
    choice : str
        Which part of the data is shown.
    remarks : tuple of str
        What the library warned of.
    seconds : float
        Of computing.
    """

    settings: Settings
    curve: Curve
    similarity: Array
    groups: tuple[Group, ...]
    score: Score | None
    no_score: str
    choice: str
    remarks: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Trouble:
    """Why there is nothing to show, and what to do."""

    message: str


def look(subject: Subject, settings: Settings, *, quick: bool = True, n_jobs: int | None = None) -> Picture | Trouble:
    """The picture of `settings` on the sequences of `subject`, or the trouble with them.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    settings : Settings
        Of the kernel.
    quick : bool
        Whether to keep it under 200 ms by looking at a part of long or many sequences, else at some seconds;
        `Picture.choice` tells which part.
    n_jobs : int, optional
        Threads.
    """
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            chosen = _plan(subject, settings, quick)
            part = subject.part(chosen.sequences, chosen.block)
            kernel = settings.kernel(n_jobs)
            gram = np.asarray(kernel(part.X), dtype=np.float64)
            similarity, scale = _similarity(gram)
            curve = _curve(sensitivity(kernel, _some(part, chosen), pairs=chosen.pairs), chosen.block)
            score, no_score = _score(gram / scale, part, RELATIVE_RIDGES[kernel.plan().dtype.name])
    except NUMERICAL as error:
        return Trouble(str(error))
    remarks = tuple(dict.fromkeys(str(each.message) for each in caught if each.category is HermiteAccuracyWarning))
    seconds = time.perf_counter() - begin
    return Picture(settings, curve, similarity, part.groups, score, no_score, part.choice, remarks, seconds)


def suggested(
    subject: Subject, settings: Settings, *, quick: bool = True, n_jobs: int | None = None
) -> tuple[Settings, str] | Trouble:
    """Settings with the flattest sensitivity for the same activation, depth and readout, and why; or the trouble."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            chosen = _plan(subject, settings, quick)
            # Some hundred curves are computed: each on fewer pairs than the one that is shown.
            found = suggest(
                _some(subject.part(chosen.sequences, chosen.block), chosen),
                settings.activation,
                pairs=max(chosen.pairs // 2, 24),
                n_jobs=n_jobs,
                progress=False,
                depth=settings.depth,
                readout=settings.readout,
                normalize=settings.normalize,
            )
    except NUMERICAL as error:
        return Trouble(str(error))
    return Settings.of(found.kernel), found.explanation


def read_upload(name: str, content: str) -> Subject | Trouble:
    """The subject of a file called `name` whose `content` the browser sent in base64; or the trouble with it.

    Labels stand where the format says. Only the suffix of the name is used on this machine.
    """
    with TemporaryDirectory(prefix="rntk-explore-") as folder:
        path = Path(folder, "data" + PurePath(name).suffix)
        try:
            path.write_bytes(base64.b64decode(content))
            found = read(path)
            return Subject.of(name, found.X, found.y)
        except SequenceError as error:
            return Trouble(str(error.known_as(name)))
        except (ValueError, OSError) as error:
            return Trouble(str(error))


def _plan(subject: Subject, settings: Settings, quick: bool) -> Budget:
    lengths = subject.X.lengths
    # Pairs of steps grow with the square of the length where all steps meet.
    mean = float(np.sqrt(np.mean(np.square(lengths.astype(np.float64)))))
    return plan(settings, len(subject.X), mean, quick)


def _some(part: Part, chosen: Budget) -> Any:
    """The sequences whose pairs the sensitivity is of: evenly spaced, so all classes take part."""
    n = len(part.X)
    if chosen.paired >= n:
        return part.X
    return part.X.take(np.linspace(0, n - 1, chosen.paired).round().astype(np.int64))


def _similarity(gram: Array) -> tuple[Array, float]:
    """K/√(K_ii K_jj), and the mean of the diagonal."""
    if not np.isfinite(gram).all():
        raise ArithmeticError("the kernel is not a number for some pairs; take less extreme settings")
    diagonal = np.diag(gram)
    top = float(diagonal.max())
    if not top > 0:
        raise ArithmeticError(
            "the kernel is zero for every pair: the network sees nothing of these sequences. Take a larger sigma_u"
        )
    root = np.sqrt(diagonal / top)
    both = root[:, None] * root
    # Clamped to what Cauchy and Schwarz allow. A sequence the network doesn't see resembles nothing.
    similar = np.clip(np.divide(gram / top, both, out=np.zeros_like(gram), where=both > 0), -1.0, 1.0)
    return similar, top * float(np.mean(diagonal / top))


def _curve(found: Sensitivity, block: int) -> Curve:
    if found.n_silent == found.n_pairs:
        raise ArithmeticError(
            "the kernel moves with no step of any sequence. Take a larger sigma_u, or a sigma_w that lets the past in"
        )
    assert found.pairs is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # pairs that are silent, steps that one pair has
        each = found.pairs / np.nanmax(found.pairs, axis=1, keepdims=True)
        error = np.nanstd(each, axis=0) / np.sqrt(np.maximum(found.count - 1, 1))
    mean = found.normalised
    if not np.isfinite(mean).all():
        raise ArithmeticError("the sensitivity is not a number at some steps; take less extreme settings")
    margin = 2 * np.nan_to_num(error)
    from_end = bool((found.count != found.count[-1]).any())
    # Blocks start at the first step; the middle of the k-th is at block * (k + 1/2) + 1/2 if steps count from 1.
    at = np.asarray(-block * found.lags if from_end else block * (np.arange(len(mean)) + 0.5) + 0.5, dtype=np.float64)
    return Curve(
        at,
        from_end,
        mean,
        np.maximum(mean - margin, 0.0),
        np.minimum(mean + margin, 1.0),
        found.flatness,
        found.n_pairs,
    )


def _score(gram: Array, part: Part, relative: Array) -> tuple[Score | None, str]:
    """`gram` with a diagonal of mean one."""
    if part.codes is not None:
        if len(part.groups) < 2:
            return None, "all labels are the same"
        codes = part.codes
        targets = np.where(codes[:, None] == np.arange(len(part.groups)), 1.0, -1.0)
        left_out = ridge_path(gram, targets, relative).left_out
        values = (left_out.argmax(axis=2) == codes).mean(axis=1)
        return _best("accuracy", relative, values, float(np.bincount(codes).max() / len(codes))), ""
    if part.targets is not None:
        spread = float(part.targets.std())
        if not spread > 0:
            return None, "all labels are the same"
        wanted = ((part.targets - part.targets.mean()) / spread)[:, None]
        left_out = ridge_path(gram, wanted, relative).left_out
        return _best("R²", relative, 1 - np.square(left_out - wanted).mean(axis=(1, 2)), 0.0), ""
    return None, "the data has no labels"


def _best(measure: str, ridges: Array, values: Array, baseline: float) -> Score:
    if not np.isfinite(values).any():
        raise ArithmeticError("no ridge gives a finite leave-one-out prediction; take less extreme settings")
    values = np.where(np.isfinite(values), values, -np.inf)
    best = int(len(values) - 1 - np.argmax(values[::-1]))
    return Score(measure, ridges, values, best, baseline)
