"""The picture of the demonstration: what the kernel sees, beside what a person sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...plot import COLOURS, gram
from ...plot.curves import STYLES
from .compare import DataSet, Trial

SERIES_PER_CLASS = 4


def draw(rows: list[tuple[DataSet, Trial]], path: Path) -> None:
    """Save a PNG with one row per data set: Gram matrix of its training series by class, and some of the series."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.1 * len(rows)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the machine
    axes = figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1, 1.35))
    for (data, trial), (left, right) in zip(rows, axes, strict=True):
        _draw_gram(left, data, trial)
        _draw_series(right, data)
    figure.savefig(path, format="png")


def _draw_gram(axis: Any, data: DataSet, trial: Trial) -> None:
    gram(trial.gram, data.train_labels, axis, class_names=data.class_names, label="similarity (1 = same direction)")
    axis.set_title(f"{data.name}: RNTK between {len(trial.gram)} training series", fontsize=11)


def _draw_series(axis: Any, data: DataSet) -> None:
    for label, name, colour, style in zip(
        np.unique(data.train_labels), data.class_names, COLOURS, STYLES, strict=False
    ):
        members = np.flatnonzero(data.train_labels == label)[:SERIES_PER_CLASS]
        for rank, member in enumerate(members):
            axis.plot(
                data.train[int(member)][:, 0],
                color=colour,
                linestyle=style,
                linewidth=1.3,
                alpha=0.85,
                label=name if rank == 0 else None,
            )
    axis.set_title(f"{SERIES_PER_CLASS} series of each class: {data.subject}", fontsize=11)
    axis.set_xlabel("step")
    axis.set_ylabel("value")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
