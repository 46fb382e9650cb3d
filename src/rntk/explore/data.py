"""What is looked at: sequences with or without labels, and the part of them that can be computed while one watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..learners.ensemble.learners import sample
from ..preprocessing import z_normalize
from ..preprocessing.steps import block_means
from ..sequences import SequenceBatch
from ..sequences.targets import read_task

Array = NDArray[Any]
Task = Literal["classify", "regress", "none"]


@dataclass(frozen=True)
class Group:
    """Neighbours in the picture that share a label: rows `start` to `stop`."""

    label: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the sequences, sorted by label, and what to tell about the choice.

    Attributes
    ----------
    X : SequenceBatch
        The sequences.
    codes : ndarray of shape (n,) or None
        Numbers of their classes.
    targets : ndarray of shape (n,) or None
        Numbers to predict.
    groups : tuple of Group
        The classes; empty without any.
    block : int
        How many steps were averaged into one.
    choice : str
        What is shown, in words.
    """

    X: SequenceBatch
    codes: NDArray[np.int64] | None
    targets: NDArray[np.float64] | None
    groups: tuple[Group, ...]
    block: int
    choice: str


@dataclass(frozen=True, eq=False)
class Subject:
    """Sequences and their labels, as the page has them.

    Attributes
    ----------
    name : str
        Of the file or set.
    X : SequenceBatch
        The sequences, at least two.
    task : "classify", "regress" or "none"
        What the labels are.
    y : ndarray of shape (n,) or None
        The labels.
    """

    name: str
    X: SequenceBatch
    task: Task
    y: Array | None

    @classmethod
    def of(cls, name: str, X: SequenceBatch, y: Array | None, task: str = "auto") -> Subject:
        """A study of labelled or unlabelled sequences.

        Parameters
        ----------
        name : str
            Of the file or set.
        X : SequenceBatch
            The sequences.
        y : ndarray of shape (n,) or None
            Their labels.
        task : "auto", "classify" or "regress"
            See `rntk.sequences.targets.read_task`.

        Raises
        ------
        ValueError
            Fewer than two sequences, or labels that aren't what was asked for.
        """
        if len(X) < 2:
            raise ValueError(f"{name} has a single sequence, and a kernel compares sequences; give two or more")
        if y is None:
            return cls(name, X, "none", None)
        found, labels = read_task(y, task, name)
        return cls(name, X, found, labels)

    def describe(self) -> str:
        """Sizes, in words."""
        X = self.X
        lengths = sorted({int(X.lengths.min()), X.max_length})
        words = [
            f"{len(X)} sequences",
            f"{' to '.join(map(str, lengths))} steps",
            f"{X.n_channels} channel{'s' if X.n_channels != 1 else ''}",
        ]
        if self.y is None:
            words.append("no labels")
        elif self.task == "regress":
            words.append("numbers as labels")
        else:
            count = len(np.unique(self.y))
            words.append(f"{count} class{'es' if count != 1 else ''}")
        return ", ".join(words)

    def part(self, count: int, block: int = 1) -> Part:
        """At most `count` sequences, every `block` steps averaged into one; always the same ones."""
        chosen = self._choose(min(count, len(self.X)))
        codes: Array | None = None
        targets: Array | None = None
        groups: tuple[Group, ...] = ()
        if self.y is not None and self.task == "classify":
            labels, codes = np.unique(self.y[chosen], return_inverse=True)
            order = np.argsort(codes, kind="stable")
            chosen, codes = chosen[order], codes[order]
            ends = np.cumsum(np.bincount(codes))
            starts = np.concatenate([[0], ends[:-1]])
            groups = tuple(Group(str(labels[k]), int(starts[k]), int(ends[k])) for k in range(len(labels)))
        elif self.y is not None:
            chosen = chosen[np.argsort(self.y[chosen], kind="stable")]
            targets = self.y[chosen]
        X = self.X.take(chosen)
        return Part(block_means(X, block), codes, targets, groups, block, self._say(len(chosen), block))

    def _choose(self, count: int) -> NDArray[np.int64]:
        """Which `count` sequences: classes in proportion, targets over their range, others evenly over the file."""
        n = len(self.X)
        if self.y is None or self.task == "regress":
            order = np.arange(n) if self.y is None else np.argsort(self.y, kind="stable")
            return np.sort(order[np.linspace(0, n - 1, count).round().astype(np.int64)])
        # Leave-one-out needs two of a class.
        classes = self.y if 2 * len(np.unique(self.y)) <= count else None
        return sample(n, classes, count, check_random_state(0))

    def _say(self, count: int, block: int) -> str:
        n = len(self.X)
        how = {
            "classify": ", classes in proportion",
            "regress": ", over the range of labels",
            "none": ", evenly spaced",
        }
        words = f"all {n} sequences" if count == n else f"{count} of {n} sequences{how[self.task]}"
        return words if block == 1 else f"{words}; every {block} steps averaged into one"


def cylinder_bell_funnel(n: int = 100, steps: int = 128, seed: int = 0) -> Subject:
    """Generated sequences of three classes: a plateau, a rise or a fall somewhere in noise, z-normalised.

    References
    ----------
    N. Saito, Local feature extraction and its application using a library of bases, PhD thesis, Yale, 1994.
    """
    rng = np.random.default_rng(seed)
    names = np.array(["cylinder", "bell", "funnel"])
    kinds = np.arange(n) % 3
    time = np.arange(1, steps + 1)
    start = rng.uniform(steps / 8, steps / 4, (n, 1))
    width = rng.uniform(steps / 4, 3 * steps / 4, (n, 1))
    along = (time - start) / width
    shape = np.select([kinds[:, None] == 0, kinds[:, None] == 1], [np.ones_like(along), along], 1 - along)
    inside = (along >= 0) & (along <= 1)
    values = (6 + rng.standard_normal((n, 1))) * shape * inside + rng.standard_normal((n, steps))
    X = SequenceBatch(values.reshape(-1, 1), np.arange(n + 1) * steps)
    return Subject.of("cylinder-bell-funnel", z_normalize(X), names[kinds])
