"""The three figures: sensitivity by step, Gram matrix by class, leave-one-out score by ridge.

Each is made once and then shown one picture after the other. While the newest settings have no picture the last good
one stays, faded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Label,
    LinearColorMapper,
    NumeralTickFormatter,
    PlainText,
    Range1d,
    Span,
)
from bokeh.palettes import Cividis256
from bokeh.plotting import figure

from .data import Group
from .state import Curve, Picture, Score
from .style import BLUE, FONT, QUIET, VERMILION

#: Letters that fit beside the Gram matrix, and fewest that a class may be called by.
LETTERS, FEWEST_LETTERS = 52, 3
#: R² below this is as bad as any other.
LOWEST_R2 = -0.5


def _frame(title: str, **options: Any) -> Any:
    return figure(title=title, toolbar_location=None, tools="", sizing_mode="stretch_both", **options)


class CurveFigure:
    """Sensitivity by step, with two standard errors on either side."""

    def __init__(self) -> None:
        self._x = Range1d(0, 1)
        self.source = ColumnDataSource({"at": [], "mean": [], "low": [], "high": []}, name="curve")
        self.figure = _frame("Sensitivity", x_range=self._x, y_range=Range1d(0, 1.05), min_height=180)
        self.figure.styles = {"flex": "4 1 0"}
        self.figure.yaxis.axis_label = "relative to its largest"
        self.figure.varea("at", "low", "high", source=self.source, fill_color=BLUE, fill_alpha=0.2)
        line = self.figure.line("at", "mean", source=self.source, line_color=BLUE, line_width=2)
        self.figure.add_tools(
            HoverTool(
                renderers=[line], mode="vline", tooltips=[("step", "@at{0.[0]}"), ("sensitivity", "@mean{0.000}")]
            )
        )

    def show(self, curve: Curve) -> None:
        """Another curve."""
        self.source.data = {"at": curve.at, "mean": curve.mean, "low": curve.low, "high": curve.high}
        first, last = float(curve.at[0]), float(curve.at[-1])
        margin = 0.5 if first == last else 0.0
        self._x.update(start=first - margin, end=last + margin)
        self.figure.xaxis.axis_label = "steps from the last" if curve.from_end else "step"
        self.figure.title.text = (
            f"Sensitivity of the kernel to each step, mean of {curve.n_pairs} pairs "
            f"(varies over time by {curve.flatness:.0%} of its mean; 0% is flat)"
        )


class GramFigure:
    """The Gram matrix, its diagonal scaled to one, by class."""

    def __init__(self) -> None:
        self._x, self._y = Range1d(0, 1), Range1d(1, 0)
        self._groups: tuple[Group, ...] | None = None
        self.mapper = LinearColorMapper(palette=Cividis256, low=0.0, high=1.0)
        self.source = ColumnDataSource({"image": [], "size": []})
        self.edges = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        self.figure = _frame("Gram matrix", x_range=self._x, y_range=self._y, min_height=240)
        # Square, whatever the height; the colour bar and the labels take the rest.
        self.figure.update(sizing_mode="scale_height", aspect_ratio=1.12)
        image = self.figure.image("image", x=0, y=0, dw="size", dh="size", source=self.source, color_mapper=self.mapper)
        self.figure.segment("x0", "y0", "x1", "y1", source=self.edges, line_color="white", line_width=1.5)
        self.figure.grid.visible = False
        self.figure.axis.major_tick_line_color = None
        self.figure.axis.axis_line_color = None
        self.figure.yaxis.major_label_orientation = "vertical"
        self.figure.add_layout(ColorBar(color_mapper=self.mapper, width=12, padding=6, title=None), "right")
        self.figure.add_tools(HoverTool(renderers=[image], tooltips=[("similarity", "@image{0.000}")]))

    def show(self, picture: Picture) -> None:
        """Another matrix."""
        similarity = picture.similarity.astype(np.float32)
        n = len(similarity)
        # Colours are for different sequences: the diagonal is 1 in any case. One odd sequence would take most of them,
        # so the least similar pairs share the darkest.
        low, high = np.quantile(similarity[~np.eye(n, dtype=bool)], (0.03, 0.999))
        self.mapper.update(low=float(min(low, high - 1e-6)), high=float(high))
        self.source.data = {"image": [similarity], "size": [n]}
        self._x.update(start=0, end=n)
        self._y.update(start=n, end=0)
        if picture.groups != self._groups:
            self._groups = picture.groups
            self._label(picture.groups, n)
        ascending = picture.score is not None and not picture.groups
        self.figure.title.text = f"Gram matrix, diagonal scaled to 1{', by label' if ascending else ''}"

    def _label(self, groups: tuple[Group, ...], n: int) -> None:
        ends = [group.stop for group in groups[:-1]]
        self.edges.data = {
            "x0": [0] * len(ends) + ends,
            "y0": ends + [0] * len(ends),
            "x1": [n] * len(ends) + ends,
            "y1": ends + [n] * len(ends),
        }
        centres = [(group.start + group.stop) / 2 for group in groups]
        names = label_groups(groups)
        for axis in self.figure.axis:
            axis.visible = any(names)
            axis.ticker = FixedTicker(ticks=centres, minor_ticks=[])
            # Plain text: a class called $$x$$ is no formula.
            axis.major_label_overrides = {at: PlainText(text=name) for at, name in zip(centres, names, strict=True)}


class ScoreFigure:
    """Leave-one-out score for every ridge."""

    def __init__(self) -> None:
        self._x, self._y = Range1d(1e-10, 10), Range1d(0, 1.03)
        self.source = ColumnDataSource({"ridge": [], "value": []})
        self.best = ColumnDataSource({"ridge": [], "value": []})
        self.figure = _frame(
            "Leave-one-out", x_axis_type="log", x_range=self._x, y_range=self._y, min_height=240, min_width=280
        )
        line = self.figure.line("ridge", "value", source=self.source, line_color=BLUE, line_width=2)
        self.figure.scatter("ridge", "value", source=self.best, size=11, fill_color=VERMILION, line_color="white")
        self.baseline = Span(location=0.0, dimension="width", line_color=QUIET, line_dash="dashed", line_width=1.5)
        self.baseline_label = Label(
            x=1, y=0, x_offset=4, y_offset=3, text_color=QUIET, text_font_size="12px", text_font=FONT
        )
        self.figure.add_layout(self.baseline)
        self.figure.add_layout(self.baseline_label)
        self.figure.xaxis.axis_label = "ridge, relative to the diagonal's mean"
        self.figure.add_tools(
            HoverTool(
                renderers=[line], mode="vline", tooltips=[("ridge", "@ridge{0.0e+0}"), ("score", "@value{0.000}")]
            )
        )

    def show(self, score: Score | None) -> None:
        """Another curve, or none."""
        self.figure.visible = score is not None
        if score is None:
            return
        lowest = 0.0 if score.measure == "accuracy" else LOWEST_R2
        values = np.maximum(score.values, lowest)
        self.source.data = {"ridge": score.ridges, "value": values}
        self.best.data = {"ridge": score.ridges[[score.best]], "value": values[[score.best]]}
        self.baseline.location = score.baseline
        self._x.update(start=0.5 * float(score.ridges[0]), end=2 * float(score.ridges[-1]))
        self._y.start = lowest
        self.figure.yaxis.formatter = NumeralTickFormatter(format="0%" if score.measure == "accuracy" else "0.0")
        self.baseline_label.update(
            y=score.baseline, text="largest class" if score.measure == "accuracy" else "mean label", x=score.ridges[0]
        )
        self.figure.title.text = f"Leave-one-out {score.measure} by ridge"


def label_groups(groups: tuple[Group, ...]) -> list[str]:
    """Names that fit: without what all begin with, if need be, then cut; nothing where there is no room.

    Examples
    --------
    >>> label_groups((Group("person 1", 0, 5), Group("person 2", 5, 90)))
    ['…1', '…2']
    """
    if not groups:
        return []
    room = [int(LETTERS * (group.stop - group.start) / groups[-1].stop) for group in groups]
    names = [group.label for group in groups]
    # What the first and the last in the alphabet share, all share.
    ends = zip(min(names), max(names), strict=False)
    common = next((k for k, (a, b) in enumerate(ends) if a != b), 0)
    if common > 1 and any(len(name) > letters for name, letters in zip(names, room, strict=True)):
        names = ["…" + name[common:] for name in names]
    return [
        name if len(name) <= letters else name[: letters - 1] + "…" if letters >= FEWEST_LETTERS else ""
        for name, letters in zip(names, room, strict=True)
    ]
